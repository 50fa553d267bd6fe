"""`POST /v1/{operator}`: a bulk load from a request's body, read as it arrives and sent to the engine in chunks; of
states, or with `?rows=TABLE` of rows.

The body is either lines of JSON, `[key, value]` each, of any number; or one msgpack array of such pairs, no larger than
a request, with the encoded states to be stored. A refused pair ends the load. Pairs that were acknowledged before stay,
and the answer gives their number.
"""

from __future__ import annotations

import asyncio
from abc import abstractmethod
from collections.abc import AsyncIterator, Callable, Mapping
from typing import Any, Final
from urllib.parse import parse_qsl

import msgspec

from styx.client.load import Chunk, LoadTarget, chunk_bytes_max, load
from styx.client.loaded import RowsOf, what_is_loaded
from styx.errors import BadArguments, LoadFailed, RequestRejected, describe
from styx.gateway import status
from styx.gateway.arguments import split, too_large
from styx.gateway.body import ClientGone, IncomingBody
from styx.gateway.engine import Engine
from styx.gateway.status import Answer
from styx.messages import reply_of
from styx.model.bulk_load import encode_pair, entity_text
from styx.model.operator import Operator
from styx.model.partitioning import Key
from styx.model.table_names import row_table
from styx.relational.table import Table
from styx.values.codec import encode_strict, shown

MSGPACK: Final = b"application/msgpack"

_key_decoder = msgspec.json.Decoder()
_pairs_decoder = msgspec.msgpack.Decoder(list[tuple[Any, msgspec.Raw]])


async def answer_load(
    engine: Engine,
    operator: Operator,
    query: bytes,
    headers: Mapping[bytes, bytes],
    body: IncomingBody,
    name: str,
    timeout_seconds: float,
    request_id: str,
) -> Answer:
    """Loads the body's pairs. `timeout_seconds` limits the wait for each chunk's reply, and for each part of the body.
    `name` is the idempotency key, or empty. Each chunk's own key is derived from it: the same for the same body.

    Raises `RequestRejected` for options that are wrong, and `ClientGone`.
    """
    rows, replace = _options(query)
    table = None if rows is None else engine.app.declared_table(row_table(operator.name, rows))
    pairs: AsyncIterator[Any]
    target: _EngineTarget
    if headers.get(b"content-type", b"").partition(b";")[0].strip().lower() == MSGPACK:
        target = _MsgpackTarget(engine, operator, table, replace, timeout_seconds, request_id)
        pairs = _msgpack_pairs(body, engine.limits.request_bytes_max, timeout_seconds)
    else:
        target = _JsonTarget(engine, operator, table, replace, timeout_seconds, request_id)
        pairs = _lines(body, engine.limits.request_bytes_max, timeout_seconds)
    try:
        report = await load(target, pairs, name)
    except LoadFailed as failed:
        if isinstance(failed.__cause__, ClientGone):
            raise failed.__cause__ from None
        return status.load_failed(failed)
    return status.loaded(report.loaded)


def _options(query: bytes) -> tuple[str | None, bool]:
    """The table whose rows the body has, None for states; and whether what exists is replaced."""
    options = dict(parse_qsl(query.decode("latin-1"), keep_blank_values=True))
    value, rows = options.pop("replace", "false"), options.pop("rows", None)
    if options or value not in ("true", "false"):
        raise RequestRejected(
            "bad_request",
            "a load takes ?replace=true or ?replace=false, and ?rows=TABLE for rows: got "
            f"{shown(query.decode('latin-1'))}",
        )
    return rows, value == "true"


# The body --------------------------------------------------------------------------------------------------


async def _part(body: IncomingBody, timeout_seconds: float) -> bytes:
    try:
        async with asyncio.timeout(timeout_seconds):
            return await body.part()
    except TimeoutError:
        raise RequestRejected("bad_request", f"no more of the body arrived within {timeout_seconds:g} s") from None


async def _lines(body: IncomingBody, bytes_max: int, timeout_seconds: float) -> AsyncIterator[bytes]:
    begun, size = [], 0  # the parts of an unfinished line, joined only once
    while not body.complete:
        first, *others = (await _part(body, timeout_seconds)).split(b"\n")
        begun.append(first)
        size += len(first)
        if others:
            whole, rest = b"".join(begun), others.pop()
            for line in whole, *others:
                if line.strip():
                    yield line
            begun, size = [rest], len(rest)
        if size > bytes_max:
            raise too_large(bytes_max)
    last = b"".join(begun)
    if last.strip():
        yield last


async def _msgpack_pairs(
    body: IncomingBody, bytes_max: int, timeout_seconds: float
) -> AsyncIterator[tuple[Any, msgspec.Raw]]:
    parts, size = [], 0
    while not body.complete:
        part = await _part(body, timeout_seconds)
        parts.append(part)
        size += len(part)
        if size > bytes_max:
            raise too_large(bytes_max)
    try:
        pairs = _pairs_decoder.decode(b"".join(parts))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise RequestRejected(
            "bad_request", f"the body is not a msgpack array of [key, value] pairs: {error}"
        ) from None
    for pair in pairs:
        yield pair


# To the engine ---------------------------------------------------------------------------------------------


class _EngineTarget(LoadTarget):
    def __init__(
        self,
        engine: Engine,
        operator: Operator,
        table: Table | None,
        replace: bool,
        timeout_seconds: float,
        request_id: str,
    ) -> None:
        loaded = self._loaded = what_is_loaded(operator if table is None else RowsOf(table), engine.app, encode_strict)
        self.operator = loaded.name
        self.bytes_max = chunk_bytes_max(engine.limits)
        self._engine = engine
        self._declared = operator
        self._replace = replace
        self._timeout_seconds = timeout_seconds
        self._request_id = request_id
        self._sent = 0

    def place(self, pair: Any) -> tuple[int, Key, bytes]:
        key, value = self.read(pair)
        n_slots = self._engine.n_slots
        return self._declared.slot_of(key, n_slots), key, encode_pair(key, value)

    @abstractmethod
    def read(self, pair: Any) -> tuple[Key, bytes]:
        """The checked key and the encoded state; raises a `StyxError` naming the key."""

    async def send(self, chunk: Chunk) -> None:
        engine = self._engine
        reason = engine.unavailable_reason
        if reason is not None:
            raise RequestRejected("unavailable", reason)
        self._sent += 1
        request_id = f"{self._request_id}.{self._sent}"
        arguments, function = self._loaded.arguments(chunk.pairs, self._replace), self._loaded.function
        request = engine.maker.make(self._declared, chunk.keys[0], function, arguments, chunk.name, request_id)
        async with asyncio.timeout(self._timeout_seconds):
            record = await engine.submit_request(request)
        reply_of(record).unwrap()


class _MsgpackTarget(_EngineTarget):
    """Passes encoded states on; the worker checks them."""

    def read(self, pair: tuple[Any, msgspec.Raw]) -> tuple[Key, bytes]:
        return self._declared.check_key(pair[0]), bytes(pair[1])


class _JsonTarget(_EngineTarget):
    """Decodes lines of JSON by the operator's state type, or the table's row type."""

    def __init__(
        self,
        engine: Engine,
        operator: Operator,
        table: Table | None,
        replace: bool,
        timeout_seconds: float,
        request_id: str,
    ) -> None:
        super().__init__(engine, operator, table, replace, timeout_seconds, request_id)
        declared = operator.state_type if table is None else table.row_type.declared
        kind = Any if declared is None else declared
        self._decode: Callable[[msgspec.Raw], Any] = msgspec.json.Decoder(kind).decode

    def read(self, line: bytes) -> tuple[Key, bytes]:
        parts = split(line)
        if not isinstance(parts, list) or len(parts) != 2:
            raise RequestRejected("bad_request", f"a line is a JSON array [key, value], got {shown(line)}")
        key = self._declared.check_key(_key_decoder.decode(parts[0]))
        try:
            return key, self._loaded.encoded(key, self._decode(parts[1]))
        except BadArguments:
            raise
        except Exception as error:  # noqa: BLE001 - converting runs a Struct's __post_init__, which is the app's
            kind, message = describe(error)
            why = message if isinstance(error, msgspec.ValidationError) else f"{kind}: {message}"
            raise BadArguments(f"{entity_text(self.operator, key)} cannot be loaded: {why}") from None
