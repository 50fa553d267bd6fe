"""Bulk load: the built-in function behind `client.load`, which puts many entities of one operator and slot at once.

A chunk of a load is an ordinary request for this function, so it is sequenced, replayed, repeated and serialized like
any other; nothing else in the engine knows of loads. Every pair is checked here as `ctx.put` checks it, whatever the
sender has checked. It never calls another function and never runs user code but that of the state type and the
partition key.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Sequence
from typing import Any, Final, NamedTuple

import msgspec

from styx.errors import BadArguments, BadKey, KeyExists, UnsupportedValue, ValueTooLarge, describe
from styx.model.access import Access
from styx.model.context import Context
from styx.model.function_spec import LOAD_FUNCTION, FunctionSpec
from styx.model.lifetime import values_loaded
from styx.model.operator import Operator
from styx.model.partitioning import Key
from styx.values.codec import shown

LOAD_CHUNK_PAIRS_MAX: Final = 1_000
"""Pairs of one chunk: it runs as one invocation, and its worker does nothing else meanwhile."""

_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(tuple[bool, list[tuple[Any, msgspec.Raw]]]).decode
_TRUE, _FALSE, _ARRAY_OF_TWO, _ARRAY = b"\xc3", b"\xc2", b"\x92", b"\xdd"


class LoadReport(NamedTuple):
    """The result of a bulk load: `loaded` pairs, in so many `chunks`, each of them one transaction or one message."""

    loaded: int
    chunks: int


# The request -----------------------------------------------------------------------------------------------


def encode_pair(key: Key, value: bytes) -> bytes:
    """A pair as it stands in a chunk; `value` is the encoded state."""
    return _ARRAY_OF_TWO + _encode(key) + value


def encode_pairs(pairs: Sequence[bytes]) -> bytes:
    """The msgpack array of encoded pairs."""
    return b"".join([_ARRAY, len(pairs).to_bytes(4, "big"), *pairs])


def load_arguments(pairs: Sequence[bytes], replace: bool) -> bytes:
    """The arguments of `LOAD_FUNCTION` for encoded pairs of one slot; the request's key is that of the first one."""
    return b"".join([_ARRAY_OF_TWO, _TRUE if replace else _FALSE, encode_pairs(pairs)])


def entity_text(operator: str, key: object) -> str:
    """How an error names the pair that it is about; its message starts with this and a blank."""
    return f"{operator}[{shown(key)}]"


# The function ----------------------------------------------------------------------------------------------


def _decode_params(data: bytes) -> tuple[Any, dict[str, Any]]:
    try:
        replace, pairs = _decode(data)
    except (msgspec.DecodeError, ValueError, RecursionError) as error:
        raise BadArguments(f"a chunk of a bulk load is [replace, [[key, value], …]]: {error}") from None
    if not 0 < len(pairs) <= LOAD_CHUNK_PAIRS_MAX:
        raise BadArguments(f"a chunk of a bulk load has 1 to {LOAD_CHUNK_PAIRS_MAX} pairs, got {len(pairs)}")
    return (replace, pairs), {}


def _load(ctx: Context, replace: bool, pairs: list[tuple[Any, msgspec.Raw]]) -> Coroutine[Any, Any, int]:
    # Not an `async def`: a chunk that is wrong in itself is refused like arguments that do not fit, before it runs.
    keys = checked_keys(ctx, pairs)
    return _put_all(ctx, replace, keys, _checked_states(ctx, keys, pairs))


def checked_keys(ctx: Context, pairs: list[tuple[Any, msgspec.Raw]]) -> list[Key]:
    """The keys of a chunk; raises `BadKey` for one of another slot than the request's."""
    space = ctx._spec.keys
    keys = [space.check(key) for key, _ in pairs]
    slot, *slots = space.slots_of([ctx.key, *keys], ctx._env.n_slots)
    if slots.count(slot) != len(slots):
        strange = next(key for key, other in zip(keys, slots, strict=True) if other != slot)
        raise BadKey(
            f"{entity_text(ctx.operator, strange)} does not belong to the slot of {shown(ctx.key)}, the first key of "
            "its chunk: send it in another chunk"
        )
    return keys


def _checked_states(ctx: Context, keys: list[Key], pairs: list[tuple[Any, msgspec.Raw]]) -> list[bytes]:
    """The bytes that `ctx.put` would store; raises `BadArguments` or `ValueTooLarge`."""
    operator, limit = ctx.operator, ctx._env.limits.value_bytes_max
    decode, encode = ctx._spec.decode_state, ctx._spec.encode_state
    states: list[bytes] = []
    try:
        for _, value in pairs:
            states.append(encode(decode(value)))
    except BaseException as error:  # noqa: BLE001 - a state type's own code can run here: it can raise anything
        kind, message = describe(error)
        why = message if isinstance(error, UnsupportedValue) else f"{kind}: {message}"
        raise BadArguments(f"{entity_text(operator, keys[len(states)])} cannot be loaded: {why}") from None
    for key, state in zip(keys, states, strict=True):
        if len(state) > limit:
            raise ValueTooLarge(
                f"{entity_text(operator, key)} has a state of {len(state)} bytes; the limit is {limit}: "
                "split it over several entities"
            )
    return states


class BulkLoad(Access):
    """Puts `writes`. Unless `replace`, it gives the first key that has a state, if there is one."""

    __slots__ = ("replace",)

    def __init__(self, operator: str, writes: dict[Key, bytes], replace: bool) -> None:
        super().__init__(operator, writes)
        self.replace = replace

    def overlaps(self, key: Key) -> bool:
        """As `Access.overlaps`."""
        return key in self.writes

    def result(self, read: Callable[[Key], bytes | None]) -> Key | None:
        """As `Access.result`."""
        return None if self.replace else next((key for key in self.writes if read(key) is not None), None)


async def _put_all(ctx: Context, replace: bool, keys: list[Key], states: list[bytes]) -> int:
    values = dict(zip(keys, states, strict=True))
    operator = ctx.operator
    twice = None if replace or len(values) == len(keys) else _first_repeated(keys)
    found = ctx._cell.access(BulkLoad(operator, values, replace)) if twice is None else twice
    if found is not None:
        raise KeyExists(
            f"{entity_text(operator, found)} exists already, or comes twice in one load; replace=True overwrites it"
        )
    if ctx._spec.ttl_us:
        values_loaded(ctx, keys)
    return len(keys)


def _first_repeated(keys: list[Key]) -> Key:
    seen: set[Key] = set()
    for key in keys:
        if key in seen:
            return key
        seen.add(key)
    raise AssertionError("no key is repeated")


def load_function(operator: Operator) -> FunctionSpec:
    """The load of an operator; it is in no operator's `functions`, so nothing can call it from inside a transaction."""
    function = operator.spec(LOAD_FUNCTION, _load)
    function.decode = _decode_params
    function.client_data = True
    return function
