"""Odd records: each is applied, or set aside with a reason, and nothing that stands around it is harmed."""

from __future__ import annotations

import io
from datetime import timedelta
from decimal import Decimal
from typing import Any

import fastavro
import msgspec
import pytest

from styx import App, Context, Ingest, Operator, Retry
from styx.formats import Avro
from styx.model.ingest_position import Batch, RawRecord
from styx.testing import embedded_cluster

pytestmark = pytest.mark.anyio

TOPIC = "odd"
APPLIED = ""
DECIMAL: dict[str, Any] = {
    "type": "record",
    "name": "Odd",
    "fields": [
        {"name": "value", "type": ["null", "double", "string", {"type": "array", "items": "long"}]},
        {"name": "price", "type": {"type": "bytes", "logicalType": "decimal", "precision": 38, "scale": 2}},
    ],
}
pack = msgspec.msgpack.encode


def avro(value: Any, price: Decimal = Decimal("1.50")) -> bytes:
    body = io.BytesIO()
    fastavro.schemaless_writer(body, fastavro.parse_schema(DECIMAL), {"value": value, "price": price})
    return body.getvalue()


class Typed(msgspec.Struct):
    amount: Decimal
    when: float = 0.0


def odd_app(**given: Any) -> App:
    """Every record becomes a call of one entity, which keeps what it gets as text."""
    seen = Operator("seen")

    @seen.register
    async def see(ctx: Context, value: Any) -> None:
        await ctx.put([*await ctx.get([]), repr(value)])

    @seen.register
    async def see_typed(ctx: Context, value: Typed) -> None:
        await ctx.put([*await ctx.get([]), str(value.amount)])

    function = see_typed if given.get("value") is Typed else see
    ingest: dict[str, Any] = {"to": (seen, function), "key": lambda record: "all", "retry": Retry(1)} | given
    return App("odd", [seen, Ingest("odd", topic=TOPIC, **ingest)])


async def handled(app: App, records: list[RawRecord]) -> tuple[list[str], list[tuple[str, str]]]:
    """What was seen, and the reasons of what was set aside. All are settled."""
    async with embedded_cluster(app) as cluster:

        async def ask(function: str, *args: Any) -> Any:
            return await cluster.call("odd", (TOPIC, 0), function, *args)

        await ask("begin", "t1", 0)
        outcome = await ask("take", Batch("t1", 0, len(records), records))
        assert outcome[0] == "taken"
        await cluster.advance(timedelta(0))
        position = (await ask("position"))[0]
        assert (position["next"], position["settled"]) == (len(records), len(records))
        dead = (await cluster.dead_calls("odd")).calls
        return cluster.entity("seen", "all") or [], [(each.error_type, each.error_message) for each in dead]


def raw(offset: int, value: bytes | None, time_ms: int = 0, **more: Any) -> RawRecord:
    return RawRecord(offset, time_ms, None, value, **more)


NESTED = 5_000
JSON = [
    (b"", "truncated"),
    (b" ", "truncated"),
    (None, "a tombstone"),
    (b"NaN", "malformed"),
    (b"-Infinity", "malformed"),
    (b"1e400", "out of range"),
    (b"-0.0", APPLIED),
    (b"1" * 30, "can't serialize ints"),
    (b"1" * 5_000, "cannot be decoded"),
    (b'{"a": 1, "a": 2}', APPLIED),
    (b'{"": null}', APPLIED),
    (b"[" * NESTED + b"]" * NESTED, "cannot be decoded"),
    (b"[" * 600 + b"]" * 600, APPLIED),
    (b'"\\ud800"', "truncated"),
    (b'"\xff"', "cannot be decoded"),
    (b"\xef\xbb\xbf1", "malformed"),
    (b"1 2", "trailing"),
    (b'"' + "\U0001f600".encode() * 1_000 + b'"', APPLIED),
]
MSGPACK = [
    (b"", "truncated"),
    (b"\xc1", "cannot be decoded"),
    (pack(float("nan")), APPLIED),
    (pack(float("inf")), APPLIED),
    (pack({float("nan"): 1}), APPLIED),
    (pack(2**64 - 1), APPLIED),
    (pack({b"k": 1}), APPLIED),
    (pack(msgspec.msgpack.Ext(5, b"x")), "extension type 5"),
    (b"\xdd\xff\xff\xff\xff", "truncated"),
    (b"\x91" * NESTED + b"\xc0", "cannot be decoded"),
    (b"\x82\xa1a\x01\xa1a\x02", APPLIED),
]
AVRO = [
    (b"", "cut off"),
    (avro(float("nan")), APPLIED),
    (avro([2**63 - 1] * 3, Decimal("-1e33")), APPLIED),
    (b"\x04\x01", "a length below 0"),
    (b"\x06" + b"\xfe\xff\xff\xff\xff\xff\xff\xff\xff\x01", "cut off"),
    (b"\x08", "cannot be decoded"),
]
TYPED = [
    (b'{"amount": "sNaN"}', APPLIED),
    (b'{"amount": "NaN"}', APPLIED),
    (b'{"amount": "Infinity"}', APPLIED),
    (b'{"amount": "1e999999"}', APPLIED),
    (b'{"amount": "1e99999999999999999999"}', "cannot be decoded"),
    (b'{"amount": 1}', APPLIED),
    (b'{"amount": "1", "when": 1e308}', APPLIED),
    (b'{"amount": "1", "amount": "2"}', APPLIED),
    (b'{"amount": null}', "Expected"),
]
CASES = [
    *(({"format": "json"}, b'"good"', *each) for each in JSON),
    *(({"format": "msgpack"}, pack("good"), *each) for each in MSGPACK),
    *(({"format": Avro(DECIMAL)}, avro(None), *each) for each in AVRO),
    *(({"format": "json", "value": Typed}, b'{"amount": "7"}', *each) for each in TYPED),
]


@pytest.mark.parametrize(("given", "good", "odd", "reason"), CASES, ids=lambda value: repr(value)[:30])
async def test_an_odd_value(given: dict[str, Any], good: bytes, odd: bytes | None, reason: str) -> None:
    values = [good, odd, good]
    seen, dead = await handled(odd_app(**given), [raw(offset, value) for offset, value in enumerate(values)])
    assert len(seen) + len(dead) == len(values)
    assert len(dead) == (reason != APPLIED), dead
    assert not dead or reason in dead[0][1], dead


@pytest.mark.parametrize("key", [float("nan"), float("inf"), None, b"k", 2**70, ["a"], {"a": 1}, "k\ud800"])
async def test_an_odd_key(key: Any) -> None:
    seen, dead = await handled(
        odd_app(key=lambda record: "all" if record.value == 1 else key), [raw(0, b"1"), raw(1, b"2"), raw(2, b"1")]
    )
    assert len(seen) == 2
    assert [kind for kind, _ in dead] == ["BadRecord"]
    assert "the record at offset 1 of odd, partition 0: key= of ingest 'odd'" in dead[0][1]


@pytest.mark.parametrize("amount", ["sNaN", "1e999999"])
async def test_a_number_that_cannot_be_compared(amount: str) -> None:
    app = odd_app(value=Typed, where=lambda record: record.value.amount.normalize() > 0)
    good = b'{"amount": "7"}'
    seen, dead = await handled(app, [raw(0, good), raw(1, b'{"amount": "%s"}' % amount.encode()), raw(2, good)])
    if amount == "sNaN":
        assert (seen, [kind for kind, _ in dead]) == (["7", "7"], ["BadRecord"])
        assert "where= of ingest 'odd'" in dead[0][1]
    else:
        assert len(seen) == 3


@pytest.mark.parametrize(("time_ms", "applied"), [(-1, True), (2**63 - 1, False), (-(2**63), False), (2**53, False)])
async def test_an_odd_time(time_ms: int, applied: bool) -> None:
    seen, dead = await handled(odd_app(), [raw(0, b"1"), raw(1, b"2", time_ms), raw(2, b"1")])
    assert (len(seen), len(dead)) == ((3, 0) if applied else (2, 1))


async def test_odd_headers() -> None:
    headers: list[tuple[str, bytes | None]] = [("", None), ("a", b"1"), ("a", b"\xff"), ("ä" * 300, b"")]
    app = odd_app(params=lambda record: (len(record.headers),))
    seen, dead = await handled(app, [raw(0, b"1", headers=headers), raw(1, b"1")])
    assert (seen, dead) == (["3", "0"], [])
