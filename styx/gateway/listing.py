"""Listings over HTTP: pages of an operator's entities, or with `rows=` of the rows of a table.

    GET /v1/OPERATOR?prefix=…&after=…&limit=…&values=false&rows=TABLE

    {"result": {"entries": [{"key": "alice", "value": 7}, …], "after": "…" or null}, "read": {"epoch": 31}}

Every page is read outside the log; the headers of such reads say how new it must be, and `Styx-At` with the first
page's epoch makes all pages one moment. The guard has decided before whether a client may do it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import parse_qsl

import msgspec

from styx.client.list_pages import RawPage, list_page
from styx.errors import BadArguments, SnapshotTooOld
from styx.gateway import reads
from styx.gateway.engine import Engine
from styx.gateway.status import EPOCH, JSON, Answer, ResultNotJson, failure, result_json
from styx.model.entity_list import LIST_DEFAULT, Listing, slots_listed
from styx.model.freshness import AT, Freshness
from styx.model.function_spec import LIST_FUNCTION
from styx.model.operator import Operator
from styx.model.request import encode_arguments
from styx.values.codec import decode_plain, shown

PARAMETERS: Final = ("prefix", "after", "limit", "values", "rows")
_encode = msgspec.json.Encoder().encode


class _Failed(Exception):
    """A part of a page could not be read, which `answer` tells."""

    def __init__(self, answer: Answer) -> None:
        super().__init__(answer)
        self.answer = answer


async def answer_list(
    engine: Engine, operator: Operator, query: bytes, headers: Mapping[bytes, bytes], seconds: float
) -> Answer:
    """Makes the answer; raises as a read does for what is refused before it is read."""
    wanted = _wanted(operator, query)
    freshness = reads.freshness(headers) or Freshness()

    async def ask(number: int, arguments: tuple[Any, ...], at: int | None) -> tuple[Any, int]:
        name = operator.partitions.name
        request = engine.maker.make(name, number, LIST_FUNCTION, encode_arguments(arguments))
        record = await engine.read(request, freshness if at is None else Freshness(AT, at=at))
        if record.error is None:
            return decode_plain(record.result), record.epoch
        code, kind, message = record.error
        if code == reads.TOO_OLD:
            raise SnapshotTooOld(message)
        raise _Failed(failure(code, kind, message, record if code == "aborted" else None))

    try:
        async with asyncio.timeout(seconds):
            page = await list_page(ask, slots_listed(operator, engine.n_slots), wanted, freshness.at)
            return _answer(page, wanted.values)
    except _Failed as failed:
        return failed.answer
    except SnapshotTooOld as error:
        return failure(reads.TOO_OLD, type(error).__name__, error.message)
    except TimeoutError:
        return reads.late(seconds, freshness)


def _answer(page: RawPage, values: bool) -> Answer:
    entries: list[bytes] = []
    for key, value in page.entries:
        shown_value = b""
        if values:
            try:
                shown_value = b',"value":' + result_json(value)
            except ResultNotJson as error:
                text = f"the value of {shown(key)} cannot be written as JSON: {error}; list with values=false"
                return failure("aborted", "UnsupportedValue", text)
        entries.append(b'{"key":%b%b}' % (_encode(key), shown_value))
    body = b'{"result":{"entries":[%b],"after":%b},"read":{"epoch":%d}}'
    headers = (JSON, (EPOCH, b"%d" % page.epoch)) if page.epoch >= 0 else (JSON,)
    return Answer(200, body % (b",".join(entries), _encode(page.after), page.epoch), headers)


def _wanted(operator: Operator, query: bytes) -> Listing:
    given = parse_qsl(query.decode("latin-1"), keep_blank_values=True)
    found = dict(given)
    if len(found) < len(given):
        raise BadArguments(f"a listing takes each parameter once: got {shown([name for name, _ in given])}")
    for name in found:
        if name not in PARAMETERS:
            raise BadArguments(f"a listing has no parameter {shown(name)}; it has: {', '.join(PARAMETERS)}")
    limit, values = found.get("limit", str(LIST_DEFAULT)), found.get("values", "true")
    if not limit.isascii() or not limit.isdigit() or len(limit) > 9:
        raise BadArguments(f"limit= is a number of entries, got {shown(limit)}")
    if values not in ("true", "false"):
        raise BadArguments(f"values= is true or false, got {shown(values)}")
    rows, prefix = found.get("rows", ""), found.get("prefix", "")
    return Listing(operator.name, rows, prefix, found.get("after"), int(limit), values == "true").checked()
