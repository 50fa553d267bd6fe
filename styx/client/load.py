"""A bulk load on the sender's side: pairs are gathered in chunks, and a bounded number of chunks is under way.

Each chunk is a transaction; the load as a whole is not. The `LoadTarget` defines chunks and sends them. When a chunk
has failed, no more pairs are read, and the chunks under way are awaited, so that the number of loaded pairs is certain.
"""

from __future__ import annotations

import asyncio
import secrets
from abc import ABC, abstractmethod
from collections.abc import AsyncIterable, Iterable, Iterator
from typing import Any, Final

from styx.errors import (
    BadArguments,
    LoadFailed,
    OutcomeUnknown,
    RequestRejected,
    TransactionAborted,
    UnsupportedValue,
    describe,
)
from styx.model.bulk_load import LOAD_CHUNK_PAIRS_MAX, LoadReport, entity_text
from styx.model.limits import KEY_BYTES_MAX, KIB, Limits
from styx.model.load_offenders import renumbered
from styx.model.operator import Operator
from styx.model.partitioning import Key
from styx.values.codec import shown

LOAD_CHUNK_BYTES_MAX: Final = 256 * KIB
"""Encoded pairs of one chunk; a single pair may be larger."""
LOAD_CHUNKS_IN_FLIGHT_MAX: Final = 8
"""Chunks of one load that are under way at once."""
REPEAT_WAIT_FIRST_SECONDS: Final = 0.1
REPEAT_WAIT_SECONDS_MAX: Final = 2.0
"""Waits between a chunk's attempts: twice as long each time, up to this."""

_REQUEST_OVERHEAD_BYTES: Final = 2 * KEY_BYTES_MAX
"""Bytes of a request besides its pairs: names, ids, and its first key once more."""
_NOT_TAKEN: Final = frozenset({"overloaded", "unavailable"})
_UNCERTAIN: Final = frozenset({"timeout", "unknown"})
_WORTH_REPEATING: Final = _NOT_TAKEN | _UNCERTAIN


class Chunk:
    """Encoded `pairs` of one `group`, with their keys and their places in the whole load.

    `name` is the same in all attempts and no other chunk's.
    """

    __slots__ = ("group", "indices", "keys", "name", "pairs", "size")

    def __init__(self, group: int) -> None:
        self.group = group
        self.name = ""
        self.keys: list[Key] = []
        self.indices: list[int] = []
        self.pairs: list[bytes] = []
        self.size = 0


class LoadTarget(ABC):
    """Where the chunks of one load go, and how much one of them holds; `operator` is its name, for errors.

    `attempts_max`: how often a chunk is sent when no reply came or the other side had no room. More than once only
    where `Chunk.name` goes along as an idempotency key.
    """

    operator: str
    pairs_max: int = LOAD_CHUNK_PAIRS_MAX
    bytes_max: int = LOAD_CHUNK_BYTES_MAX
    attempts_max: int = 1

    @abstractmethod
    def place(self, pair: Any) -> tuple[int, Key, bytes]:
        """(group, key, `encode_pair`) of a pair; chunks hold pairs of one group. Raises a `StyxError` naming it."""

    @abstractmethod
    async def send(self, chunk: Chunk) -> None:
        """Returns when all of it is loaded.

        Raises `RequestRejected`, `TransactionAborted`, `TimeoutError` or `ConnectionError`, or `LoadFailed` if a part
        of it may be loaded, with the place in the chunk as `index`.
        """


def chunk_bytes_max(limits: Limits) -> int:
    """How many bytes of pairs a request may hold in a deployment with `limits`."""
    return max(1, min(LOAD_CHUNK_BYTES_MAX, limits.request_bytes_max - _REQUEST_OVERHEAD_BYTES))


async def load(target: LoadTarget, pairs: Iterable[Any] | AsyncIterable[Any], name: str | None = None) -> LoadReport:
    """Sends all pairs; returns when all are loaded, or raises `LoadFailed`.

    `name` begins the names of the chunks, which are the same for the same pairs; None: one that nobody else has.
    """
    return await _Load(target, secrets.token_hex(8) if name is None else name).run(pairs)


class _Load:
    def __init__(self, target: LoadTarget, name: str) -> None:
        self._target = target
        self._name = name
        self._index = 0
        self._open: dict[int, Chunk] = {}
        self._under_way: set[asyncio.Task[None]] = set()
        self._loaded = 0
        self._chunks = 0
        self._failure: tuple[BaseException, object, int | None] | None = None

    async def run(self, pairs: Iterable[Any] | AsyncIterable[Any]) -> LoadReport:
        try:
            await self._send_all(pairs)
            await self._wait_for(asyncio.ALL_COMPLETED)
        finally:
            # Only after a cancellation there are any.
            for task in self._under_way:
                task.cancel()
        if self._failure is not None:
            error, key, index = self._failure
            raise LoadFailed(*_reason(error), self._loaded, key=key, index=index) from error
        return LoadReport(self._loaded, self._chunks)

    async def _send_all(self, pairs: Iterable[Any] | AsyncIterable[Any]) -> None:
        try:
            if isinstance(pairs, AsyncIterable):
                async for pair in pairs:
                    for full in self._filled((pair,)):
                        if not await self._launch(full):
                            return
            else:
                for full in self._filled(pairs):
                    if not await self._launch(full):
                        return
        except Exception as error:  # noqa: BLE001 - the caller's iterator is the caller's code
            self._fail(error, None, self._index)
            return
        for chunk in self._open.values():
            if not await self._launch(chunk):
                return

    def _filled(self, pairs: Iterable[Any]) -> Iterator[Chunk]:
        """Puts each pair into the chunk of its group; gives every chunk that has no room for the next one."""
        target, chunks = self._target, self._open
        place, pairs_max, bytes_max = target.place, target.pairs_max, target.bytes_max
        index = self._index
        for pair in pairs:
            group, key, encoded = place(pair)
            chunk = chunks.get(group)
            if chunk is None:
                chunk = chunks[group] = Chunk(group)
            elif len(chunk.pairs) >= pairs_max or chunk.size + len(encoded) > bytes_max:
                full, chunk = chunk, Chunk(group)
                chunks[group] = chunk
                yield full
            chunk.keys.append(key)
            chunk.indices.append(index)
            chunk.pairs.append(encoded)
            chunk.size += len(encoded)
            self._index = index = index + 1

    async def _launch(self, chunk: Chunk) -> bool:
        """Sends a chunk as soon as there is room; whether the load goes on."""
        while len(self._under_way) >= LOAD_CHUNKS_IN_FLIGHT_MAX:
            await self._wait_for(asyncio.FIRST_COMPLETED)
        if self._failure is not None:
            return False
        chunk.name = f"{self._name}/{self._chunks}" if self._name else ""
        self._chunks += 1
        self._under_way.add(asyncio.ensure_future(self._send(chunk)))
        # A million pairs from a list would otherwise not let anything else run, the engine included.
        await asyncio.sleep(0)
        return True

    async def _wait_for(self, when: str) -> None:
        if self._under_way:
            _, self._under_way = await asyncio.wait(self._under_way, return_when=when)

    async def _send(self, chunk: Chunk) -> None:
        target, wait_s = self._target, REPEAT_WAIT_FIRST_SECONDS
        for left in range(target.attempts_max - 1, -1, -1):
            try:
                await target.send(chunk)
            except Exception as error:  # noqa: BLE001 - whatever it is, the load has to say how far it came
                if left == 0 or _reason(error)[0] not in _WORTH_REPEATING:
                    self._chunk_failed(chunk, error)
                    return
                await asyncio.sleep(wait_s)
                wait_s = min(2 * wait_s, REPEAT_WAIT_SECONDS_MAX)
            else:
                self._loaded += len(chunk.pairs)
                return

    def _chunk_failed(self, chunk: Chunk, error: Exception) -> None:
        if isinstance(error, LoadFailed):
            self._loaded += error.loaded
            if error.index is not None and 0 <= error.index < len(chunk.keys):
                self._fail(error, chunk.keys[error.index], chunk.indices[error.index])
                return
        code, kind, message = _reason(error)
        renumbered_message, first = renumbered(message, chunk.indices)
        if first is not None:
            named = LoadFailed(code, kind, renumbered_message, 0)
            named.__cause__ = error
            self._fail(named, chunk.keys[first], chunk.indices[first])
            return
        places = [
            place
            for place, key in enumerate(chunk.keys)
            if message.startswith(entity_text(self._target.operator, key) + " ")
        ]
        if not places:
            self._fail(error, None, None)
        else:
            # Of a key that comes twice, the second one failed.
            self._fail(error, chunk.keys[places[-1]], chunk.indices[places[-1]])

    def _fail(self, error: Exception, key: object, index: int | None) -> None:
        """Keeps the first failure; but an unknown outcome of one chunk counts more than a refusal of another."""
        first = self._failure
        if first is None or (_reason(error)[0] in _UNCERTAIN and _reason(first[0])[0] in _NOT_TAKEN):
            self._failure = (error, key, index)


def split_pair(pair: Any) -> tuple[Any, Any]:
    """The key and the value of a pair; raises `BadArguments` for no pair."""
    if type(pair) in (tuple, list) and len(pair) == 2:
        return pair[0], pair[1]
    raise BadArguments(f"a pair is (key, value), got {shown(pair)}")


def encode_value(operator: Operator, key: Key, value: Any) -> bytes:
    """The state that `value` is to be, checked as `ctx.put` checks it; raises `BadArguments` naming the key."""
    try:
        return operator.encode_state(value)
    except UnsupportedValue as error:
        raise unfit(operator.name, key, error) from None


def unfit(operator: str, key: Key, error: UnsupportedValue) -> BadArguments:
    """The error for a pair whose value cannot be a state, naming its key."""
    return BadArguments(f"{entity_text(operator, key)} cannot be loaded: {error}")


def _reason(error: BaseException) -> tuple[str, str, str]:
    """(code, type, message), as a reply would say it."""
    if isinstance(error, LoadFailed | TransactionAborted):
        return getattr(error, "code", "aborted"), error.type, error.message
    if isinstance(error, RequestRejected):
        return error.code, RequestRejected.__name__, error.message
    kind, message = describe(error)
    if isinstance(error, OutcomeUnknown):
        return "unknown", kind, message
    if isinstance(error, TimeoutError):
        return "timeout", kind, message
    if isinstance(error, OSError):
        return "unavailable", kind, message
    return getattr(error, "code", "bad_request"), kind, message
