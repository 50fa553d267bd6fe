"""One function of an operator, as the app declares it and as the engine uses it, and a call of it. Paper section 3."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any, Final, NamedTuple

import msgspec

from styx.errors import ReadOnlyViolation
from styx.model.agenda import agenda_of
from styx.model.event import events_of
from styx.model.partitioning import KeySpace
from styx.model.signature import Signature
from styx.native.interpreted import native
from styx.values.codec import decode_plain, ext_hook
from styx.values.custom_types import dec_hook

UserFunction = Callable[..., Coroutine[Any, Any, Any]]
LOAD_FUNCTION: Final = "<load>"
"""The built-in function behind `client.load`; no registered function can have its name."""
READ_FUNCTION: Final = "<read>"
"""The built-in function behind `client.entity`; likewise."""
READ_ROWS_FUNCTION: Final = "<rows>"
"""The built-in function behind `client.rows`; likewise."""
LOAD_ROWS_FUNCTION: Final = "<load rows>"
"""The built-in function behind `client.load_rows`; likewise."""
DELIVER_FUNCTION: Final = "<deliver>"
"""The built-in function that makes a call which was given for later; no request can name it."""
PUT_OFF_FUNCTION: Final = "<put off>"
"""The built-in function behind a delivery that failed; likewise."""
QUEUE_FUNCTION: Final = "<queue>"
"""The built-in function that gives a call in a lane of a group; likewise."""
DEAD_FUNCTION: Final = "<dead>"
"""The built-in function behind `client.dead_calls`; as `READ_FUNCTION`."""
REPLAY_DEAD_FUNCTION: Final = "<replay dead>"
"""The built-in function behind `client.replay_dead_call`; likewise."""
DROP_DEAD_FUNCTION: Final = "<drop dead>"
"""The built-in function behind `client.drop_dead_call`; likewise."""
LIST_FUNCTION: Final = "<list>"
"""The built-in function behind `client.list`, on partitions; likewise, and only by a read outside the log."""
LOOK_FUNCTION: Final = "<look>"
"""The built-in function that reads a value to be edited; as `READ_FUNCTION`."""
EDIT_FUNCTION: Final = "<edit>"
"""The built-in function behind `styx state edit`; likewise."""
OF_EDITS: Final = frozenset({LOOK_FUNCTION, EDIT_FUNCTION})
OF_DEAD_CALLS: Final = frozenset({DEAD_FUNCTION, REPLAY_DEAD_FUNCTION, DROP_DEAD_FUNCTION})
BUILT_IN: Final = frozenset(
    {
        LOAD_FUNCTION,
        READ_FUNCTION,
        READ_ROWS_FUNCTION,
        LOAD_ROWS_FUNCTION,
        DELIVER_FUNCTION,
        PUT_OFF_FUNCTION,
        QUEUE_FUNCTION,
        LIST_FUNCTION,
        *OF_EDITS,
        *OF_DEAD_CALLS,
    }
)


class Hints(NamedTuple):
    """What `register` is told of a function. `read_only`: the function neither writes nor calls one that may. `local`:
    all that it calls is on the slot of its own entity. `contended`: requests for it are usually in conflict.
    """

    read_only: bool = False
    local: bool = False
    contended: bool = False


NO_HINTS: Final = Hints()


def _no_state(value: Any) -> bytes:
    raise ReadOnlyViolation("a write of a read-only function")


class FunctionSpec:
    """One registered function: its name, its code and its signature (resolved when the app is built).

    `operator` is its operator's name; `keys` and what encodes and decodes state are its operator's, too: every call
    needs them. `client_data`: its arguments are data that a client sends, limited by the size of a request alone,
    and an error in them is no abort of the app. `read_only`, `local` and `contended` are of the `hints`.
    `deletes_alone`: it may delete its entity's value, to which nothing refers, and which has no `ttl_us`, a time to
    live in microseconds. Calls for later that it gives are written to the `agenda_table`, its events to the
    `events_table`.
    `decode` makes (positional, keyword) arguments of an encoded argument list; it raises `BadArguments`. `usual`
    holds decoders of short positional lists, by their first byte; they raise what msgspec raises.
    `graph` is the function's place in a transaction graph (`styx.model.graph_place`), None outside of one; such a
    function has a specification for each graph, and calls between workers name it by `called_as`. `bounded`: not
    every function may be called by it.
    """

    __slots__ = (
        "_decode_result",
        "_signature",
        "agenda_table",
        "bounded",
        "called_as",
        "client_data",
        "contended",
        "decode",
        "decode_state",
        "deletes_alone",
        "encode_state",
        "events_table",
        "func",
        "graph",
        "hints",
        "keys",
        "local",
        "name",
        "operator",
        "pack_state",
        "read_only",
        "ttl_us",
        "unpack_state",
        "usual",
    )

    def __init__(
        self,
        keys: KeySpace,
        name: str,
        func: UserFunction,
        encode_state: Callable[[Any], bytes],
        decode_state: Callable[[bytes], Any],
        pack_state: Callable[[Any], bytes],
        unpack_state: Callable[[bytes], Any],
        hints: Hints = NO_HINTS,
    ) -> None:
        self.operator = keys.operator
        self.agenda_table = agenda_of(keys.operator)
        self.events_table = events_of(keys.operator)
        self.keys = keys
        self.name = name
        self.func = func
        self.client_data = False
        self.hints = hints
        self.read_only = hints.read_only
        self.local = hints.local
        self.contended = hints.contended
        self.graph: Any = None
        self.called_as = name
        self.bounded = hints.read_only
        self.deletes_alone = not hints.read_only
        self.ttl_us = 0
        self.encode_state = encode_state
        self.decode_state = decode_state
        # A read-only function has nothing that it could write with, so that `Context.put` need not ask.
        self.pack_state = _no_state if hints.read_only else pack_state
        self.unpack_state = unpack_state
        self._signature: Signature | None = None
        self._decode_result: Callable[[bytes], Any] = decode_plain
        self.decode: Callable[[bytes], tuple[Any, dict[str, Any]]] = self._decode_first
        self.usual: dict[int, Callable[[bytes], Any]] = {}

    @property
    def signature(self) -> Signature:
        """Resolved at first use, so that annotations may name types defined further down in the module."""
        if self._signature is None:
            signature = Signature(f"{self.operator}.{self.name}", self.func)
            self._decode_result = _result_decoder(signature.result_type)
            self._signature = signature
            self.decode = signature.decode
            self.usual = signature.usual
        return self._signature

    def in_graph(self, place: Any, called_as: str) -> FunctionSpec:
        """The same function at its place in a transaction graph."""
        spec = FunctionSpec(
            self.keys,
            self.name,
            self.func,
            self.encode_state,
            self.decode_state,
            self.pack_state,
            self.unpack_state,
            self.hints,
        )
        spec.deletes_alone, spec.ttl_us = self.deletes_alone, self.ttl_us
        spec.graph, spec.called_as, spec.bounded = place, called_as, True
        _ = spec.signature
        return spec

    def _decode_first(self, data: bytes) -> tuple[Any, dict[str, Any]]:
        return self.signature.decode(data)

    def decode_result(self, data: bytes) -> Any:
        """A synchronous call's result as the caller gets it: converted to the return annotation if it fits."""
        return self._decode_result(data)


@native
class MadeCall(msgspec.Struct, eq=False, gc=False):
    """A call that a function has made. `key` is checked, and lives on `slot`.

    Two executions of a function made the same call if these are equal.
    """

    synchronous: bool
    slot: int
    function: FunctionSpec
    key: Any
    params: bytes

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, MadeCall)
            and self.function is other.function
            and self.slot == other.slot
            and self.params == other.params
            and self.synchronous == other.synchronous
            and bool(self.key == other.key)
        )

    def __ne__(self, other: object) -> bool:
        return not self == other  # a Struct's own one compares identity, whatever `__eq__` does

    def __hash__(self) -> int:
        return hash((self.slot, self.params))


def _result_decoder(annotation: Any) -> Callable[[bytes], Any]:
    if annotation is Any or annotation is None:
        return decode_plain
    try:
        typed = msgspec.msgpack.Decoder(annotation, ext_hook=ext_hook, dec_hook=dec_hook).decode
    except Exception:  # noqa: BLE001 - an annotation that msgspec has no decoder for is no error
        return decode_plain

    def decode(data: bytes) -> Any:
        try:
            return typed(data)
        except Exception:  # noqa: BLE001 - a type's own code can run here
            # An annotation is a wish, not a check, on results: a function annotated `-> int` may return None.
            return decode_plain(data)

    return decode
