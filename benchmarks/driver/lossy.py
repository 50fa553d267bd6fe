"""A copy of an app in which one function loses writes, to show that the workload's audit notices.

The workload's own app is not changed. In a share of the function's invocations `put` and `delete` do nothing, without
an error. Reads, calls and results stay the same. The share is drawn by transaction and key, so that each execution of a
transaction loses the same writes.
"""

from __future__ import annotations

from collections.abc import Awaitable
from functools import wraps
from hashlib import blake2b
from typing import Any, Final, NamedTuple

import msgspec

from styx.errors import ConfigurationError
from styx.model.app import App
from styx.model.context import Context
from styx.model.function_spec import FunctionSpec, Hints
from styx.model.operator import Operator
from styx.model.partitioning import Key
from styx.model.waiting import DONE

SHARE_DEFAULT: Final = 0.01
_DRAWN_BYTES: Final = 8


class Loss(NamedTuple):
    """The option `--lose OPERATOR.FUNCTION[=SHARE]`."""

    operator: str
    function: str
    share: float


class Lost(msgspec.Struct, frozen=True, kw_only=True):
    """The loss, for the result: `invocations` of `function` lost their writes, a `share` of all."""

    function: str
    share: float
    invocations: int


class LossyApp:
    """`app` is `original` with the loss. Raises `ConfigurationError` if it has no such function."""

    def __init__(self, original: App, loss: Loss) -> None:
        self._loss = loss
        self._lost: set[tuple[int, Key]] = set()
        operator = original.operators.get(loss.operator)
        if operator is None or loss.function not in operator.functions:
            known = [f"{each.name}.{function}" for each in original.operators.values() for function in each.functions]
            raise ConfigurationError(
                f"--lose {loss.operator}.{loss.function}: app {original.name!r} has no such function; "
                f"it has: {', '.join(known)}"
            )
        lossy = _Lossy(operator, self._losing(operator.functions[loss.function]))
        self.app = App(original.name, [lossy if each is operator else each for each in original.operators.values()])

    @property
    def lost(self) -> Lost:
        """The loss so far. An invocation counts once, even if it was executed several times or its transaction
        aborted.
        """
        function = f"{self._loss.operator}.{self._loss.function}"
        return Lost(function=function, share=self._loss.share, invocations=len(self._lost))

    def _losing(self, original: FunctionSpec) -> FunctionSpec:
        function, share, lost = original.func, self._loss.share, self._lost

        @wraps(function)
        async def losing(ctx: Context, *positional: Any, **named: Any) -> Any:
            invocation = ctx.transaction_id, ctx.key
            if _drawn(invocation) < share:
                return await function(_LossyContext(ctx, invocation, lost), *positional, **named)
            return await function(ctx, *positional, **named)

        return FunctionSpec(
            original.keys,
            original.name,
            losing,
            original.encode_state,
            original.decode_state,
            original.pack_state,
            original.unpack_state,
            Hints(read_only=original.read_only, local=original.local),
        )


class _Lossy(Operator):
    """The function of that name; for the lossy one, however callers name it, the replacement."""

    def __init__(self, original: Operator, replacement: FunctionSpec) -> None:
        vars(self).update(vars(original))
        self.functions = {**original.functions, replacement.name: replacement}

    def function(self, wanted: Any) -> FunctionSpec:
        return self.functions[super().function(wanted).name]


class _LossyContext:
    """A context that loses its writes and notes them in `lost`. Everything else is passed on."""

    def __init__(self, ctx: Context, invocation: tuple[int, Key], lost: set[tuple[int, Key]]) -> None:
        self._ctx = ctx
        self._invocation = invocation
        self._lost = lost

    def __getattr__(self, name: str) -> Any:
        return getattr(self._ctx, name)

    @property
    def state(self) -> _LossyContext:
        return self

    def put(self, _value: Any) -> Awaitable[None]:
        return self.delete()

    def delete(self) -> Awaitable[None]:
        self._lost.add(self._invocation)
        return DONE


def parse(text: str) -> Loss:
    """OPERATOR.FUNCTION[=SHARE]; raises `ConfigurationError`."""
    name, _, share_text = text.partition("=")
    operator, _, function = name.rpartition(".")
    try:
        share = float(share_text) if "=" in text else SHARE_DEFAULT
    except ValueError:
        share = float("nan")
    if not operator or not function or not 0 < share <= 1:
        raise ConfigurationError(
            f"--lose {text}: it is OPERATOR.FUNCTION or OPERATOR.FUNCTION=SHARE, the share above 0 and up to 1"
        )
    return Loss(operator, function, share)


def _drawn(invocation: tuple[int, Key]) -> float:
    """From 0 to 1, always the same for the same invocation."""
    digest = blake2b(repr(invocation).encode(), digest_size=_DRAWN_BYTES).digest()
    return int.from_bytes(digest) / float(2 ** (8 * _DRAWN_BYTES))
