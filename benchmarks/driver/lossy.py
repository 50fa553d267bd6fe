"""A copy of an app in which one function loses writes, to show that the workload's audit notices.

The workload's own app is not changed. In a share of the function's invocations its writes do nothing, without an error:
all of its entity's state and rows, or only those of one table. Reads, calls and results stay the same. The share is
drawn by transaction and key, so that each execution of a transaction loses the same writes.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
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
from styx.relational.table import Table

SHARE_DEFAULT: Final = 0.01
_DRAWN_BYTES: Final = 8


class Loss(NamedTuple):
    """The option `--lose OPERATOR.FUNCTION[/TABLE][=SHARE]`; `table` is "" for everything that the function writes."""

    operator: str
    function: str
    share: float
    table: str = ""

    @property
    def name(self) -> str:
        """What is lost."""
        return f"{self.operator}.{self.function}{self.table and '/'}{self.table}"


class Lost(msgspec.Struct, frozen=True, kw_only=True):
    """The loss, for the result: `invocations` of `function` lost their writes, a `share` of all."""

    function: str
    share: float
    invocations: int


class LossyApp:
    """`app` is `original` with the loss. Raises `ConfigurationError` if it has no such function, or has events."""

    def __init__(self, original: App, loss: Loss) -> None:
        self._loss = loss
        self._lost: set[tuple[int, Key]] = set()
        if original.events:
            raise ConfigurationError(
                f"--lose copies an app with another operator in it, which its events, graphs and references do not "
                f"know: app {original.name!r} has events, so break a function of it in a test instead"
            )
        operator = original.operators.get(loss.operator)
        if operator is None or loss.function not in operator.functions:
            known = [f"{each.name}.{function}" for each in original.operators.values() for function in each.functions]
            raise ConfigurationError(
                f"--lose {loss.operator}.{loss.function}: app {original.name!r} has no such function; "
                f"it has: {', '.join(known)}"
            )
        if loss.table and loss.table not in operator.tables:
            has = ", ".join(operator.tables) or "none"
            raise ConfigurationError(f"--lose {loss.name}: {loss.operator!r} has no such table; it has: {has}")
        lossy = _Lossy(operator, self._losing(operator.functions[loss.function]))
        self.app = App(original.name, [lossy if each is operator else each for each in original.operators.values()])

    @property
    def lost(self) -> Lost:
        """The loss so far. An invocation counts once, even if it was executed several times or its transaction
        aborted.
        """
        return Lost(function=self._loss.name, share=self._loss.share, invocations=len(self._lost))

    def _losing(self, original: FunctionSpec) -> FunctionSpec:
        function, share, table, lost = original.func, self._loss.share, self._loss.table, self._lost

        @wraps(function)
        async def losing(ctx: Context, *positional: Any, **named: Any) -> Any:
            invocation = ctx.transaction_id, ctx.key
            if _drawn(invocation) < share:
                return await function(_LossyContext(ctx, invocation, lost, table), *positional, **named)
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
    """A context that loses its writes, or those to one table, and notes them in `lost`. Everything else is passed
    on.
    """

    def __init__(self, ctx: Context, invocation: tuple[int, Key], lost: set[tuple[int, Key]], table: str) -> None:
        self._ctx = ctx
        self._invocation = invocation
        self._lost = lost
        self._table = table

    def __getattr__(self, name: str) -> Any:
        return getattr(self._ctx, name)

    @property
    def state(self) -> _LossyContext:
        return self

    def rows(self, table: Table) -> Any:
        rows = self._ctx.rows(table)
        return rows if self._table not in ("", table.name) else _LossyRows(rows, table, self.lose)

    def put(self, value: Any) -> Awaitable[None]:
        return self._ctx.put(value) if self._table else self.lose()

    def delete(self) -> Awaitable[None]:
        return self._ctx.delete() if self._table else self.lose()

    def lose(self) -> Awaitable[None]:
        """A write that is not done."""
        self._lost.add(self._invocation)
        return DONE


class _LossyRows:
    """A table's rows whose writes are lost, each with a call of `lose`. Everything else is passed on."""

    def __init__(self, rows: Any, table: Table, lose: Callable[[], Awaitable[None]]) -> None:
        self._rows = rows
        self._table = table
        self._lose = lose

    def __getattr__(self, name: str) -> Any:
        return getattr(self._rows, name)

    async def insert(self, row: Any, on_conflict: str | None = None) -> Any:
        await self._lose()
        return row

    def put(self, _row: Any) -> Awaitable[None]:
        return self._lose()

    async def update(self, pk: Any, **changes: Any) -> Any:
        await self._lose()
        return self._table.row_type.changed(await self._rows.get(pk), changes)

    async def update_where(self, changes: dict[str, Any], **conditions: Any) -> list[Any]:
        await self._lose()
        return [self._table.row_type.changed(row, changes) for row in await self._rows.select(**conditions)]

    async def delete(self, pk: Any) -> bool:
        await self._lose()
        return await self._rows.get(pk) is not None

    async def delete_where(self, **conditions: Any) -> int:
        await self._lose()
        number: int = await self._rows.count(**conditions)
        return number


def parse(text: str) -> Loss:
    """OPERATOR.FUNCTION[/TABLE][=SHARE]; raises `ConfigurationError`."""
    name, _, share_text = text.partition("=")
    path, slash, table = name.partition("/")
    operator, _, function = path.rpartition(".")
    try:
        share = float(share_text) if "=" in text else SHARE_DEFAULT
    except ValueError:
        share = float("nan")
    if not operator or not function or (slash and not table) or not 0 < share <= 1:
        raise ConfigurationError(
            f"--lose {text}: it is OPERATOR.FUNCTION, with /TABLE if only rows of that table are to be lost, and with "
            "=SHARE for a share above 0 and up to 1"
        )
    return Loss(operator, function, share, table)


def _drawn(invocation: tuple[int, Key]) -> float:
    """From 0 to 1, always the same for the same invocation."""
    digest = blake2b(repr(invocation).encode(), digest_size=_DRAWN_BYTES).digest()
    return int.from_bytes(digest) / float(2 ** (8 * _DRAWN_BYTES))
