"""What is read of anybody's input takes time linear in its length, whatever is in it: no input of a few kB may hold up
a process for seconds. Compares processor time of an input with that of one eight times as long.
"""

from __future__ import annotations

import asyncio
import gc
import os
import random
import time
from collections.abc import Callable, Iterator
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID

import msgspec
import pytest
from aiokafka.record.default_records import DefaultRecordBatchBuilder

from styx import App, Context, Limits, Operator
from styx.gateway import bulk_load, head
from styx.gateway.arguments import ArgumentReader, split
from styx.gateway.body import IncomingBody
from styx.gateway.status import result_json
from styx.kafka.wire import Chunk
from styx.messages import Request, decode_request, encode_request
from styx.protocol.manifest import PendingTransaction
from styx.state.slot_state import SlotState
from styx.transport.address import parse_address
from styx.transport.frame import UNAUTHENTICATED_FRAME_BYTES_MAX, FrameReader, FrameTooLarge, take_frame
from styx.values.codec import decode_plain, shown
from styx.worker.admission import Admission
from styx.worker.reply_memory import ReplyMemory

TIMES_LONGER = 8
RATIO_MAX = 30
"""Quadratic time is 64 times as much, linear time 8 times."""
SECONDS_THAT_COUNT = 0.05
"""Processor time below it is not measured but ignored: at eight times the length nothing quadratic stays below it."""
N = 32_000

plain = Operator("plain")
counted = Operator("counted", key_type=int)
paired = Operator("paired", key_type=(int, str))


@plain.register
async def anything(ctx: Context, *values: Any) -> None: ...


@plain.register
async def typed(
    ctx: Context, number: int, price: Decimal, when: datetime, day: date, span: timedelta, name: UUID, raw: bytes
) -> None: ...


@plain.register
async def named(ctx: Context, **values: Decimal) -> None: ...


app = App("linear", [plain, counted, paired])
reader = ArgumentReader(plain.function("anything").signature)
typed_reader = ArgumentReader(plain.function("typed").signature)
named_reader = ArgumentReader(plain.function("named").signature)


def cpu_seconds(run: Callable[[Any], Any], value: Any) -> float:
    gc.disable()  # its passes cost what other tests have left behind
    began = time.process_time()
    try:
        run(value)
    except Exception:  # noqa: BLE001 - whether it is refused is another test's business
        pass
    finally:
        took = time.process_time() - began
        gc.enable()
    return took


def check_linear(run: Callable[[Any], Any], make: Callable[[int], Any], n: int = N) -> None:
    small, large = make(n), make(TIMES_LONGER * n)
    took = min(cpu_seconds(run, large) for _ in range(2))
    if took > SECONDS_THAT_COUNT:
        before = min(cpu_seconds(run, small) for _ in range(3))
        assert took < RATIO_MAX * max(before, SECONDS_THAT_COUNT / TIMES_LONGER)


BODIES: dict[str, Callable[[int], bytes]] = {
    "escaped quotes that never end": lambda n: b"[" * 129 + b'"' + b'\\"' * n,
    "escaped quotes outside of a string": lambda n: b"[" * 129 + b'\\"' * n,
    "quotes": lambda n: b"[" * 129 + b'"' * n,
    "backslashes": lambda n: b"[" * 129 + b'"' + b"\\" * n,
    "nesting": lambda n: b"[" * n,
    "nested objects": lambda n: b'{"a":' * n,
    "many arrays": lambda n: b"[" + b"[]," * n + b"[]]",
    "many arrays as deep as may be": lambda n: b"[" + (b"[" * 127 + b"]" * 127 + b",") * (n // 64) + b"0]",
    "many objects": lambda n: b"[" + b'{"a":{}},' * n + b"0]",
    "many members": lambda n: b"{" + b",".join(b'"a%d":0' % k for k in range(n)) + b"}",
    "one member many times": lambda n: b"{" + b'"a":0,' * n + b'"b":0}',
    "many arguments": lambda n: b"[" + b"0," * n + b"0]",
    "digits": lambda n: b"[" + b"9" * n + b"]",
    "digits in an object": lambda n: b'[{"a":' + b"9" * n + b"}]",
    "decimals": lambda n: b'[{"a":0.' + b"1" * n + b"}]",
    "a number with an exponent": lambda n: b'[{"a":' + b"1" * n + b"e-%d}]" % n,
    "a long exponent": lambda n: b'[{"a":1e' + b"9" * n + b"}]",
    "blanks": lambda n: b"[" + b" " * n,
    "escapes": lambda n: b'["' + b"\\u00e9" * n + b'"]',
    "half surrogates": lambda n: b'["' + b"\\ud800" * n + b'"]',
    "no UTF-8": lambda n: b'["' + b"\xc3" * n,
    "zeros": bytes,
}


@pytest.mark.parametrize("case", BODIES)
def test_bodies(case: str) -> None:
    check_linear(split, BODIES[case])
    check_linear(lambda body: reader.read(body, 2**30), BODIES[case])


@pytest.mark.parametrize("place", range(7))
@pytest.mark.parametrize(
    "text", [b"9", b"1e9", b"-", b"0.", b"P1D", b"PT1S", b"2020-01-01T00:00:00.", b" ", b"A", b"\\u0660", b"+00:00"]
)
def test_arguments_with_types(place: int, text: bytes) -> None:
    fine = [b"0", b'"0"', b'"2020-01-01T00:00:00Z"', b'"2020-01-01"', b'"PT1S"', b'"%s"' % (b"0" * 32), b'""']

    def body(n: int) -> bytes:
        return b"[" + b",".join([*fine[:place], b'"' + text * n + b'"', *fine[place + 1 :]]) + b"]"

    check_linear(lambda each: typed_reader.read(each, 2**30), body)
    check_linear(lambda each: named_reader.read(each, 2**30), lambda n: b'{"a":"' + text * n + b'"}')


def test_messages_of_errors() -> None:
    locate = plain.function("typed").signature.located
    for text in (" - at `$[", " - at `$", "`", "9", " - at `$[9", " at 0x", " at 0xf"):
        check_linear(locate, lambda n, text=text: text * n)  # type: ignore[misc]
        check_linear(locate, lambda n, text=text: " - at `$[" + text * n + "`")  # type: ignore[misc]
        check_linear(shown, lambda n, text=text: text * n)  # type: ignore[misc]


PATHS: dict[str, Callable[[int], str]] = {
    "slashes": lambda n: "/v1/" + "/" * n,
    "escapes": lambda n: "/v1/plain/" + "%41" * n + "/anything",
    "zeros": lambda n: "/v1/plain/" + "%00" * n + "/anything",
    "encoded slashes": lambda n: "/v1/plain/" + "%2F" * n + "/anything",
    "half surrogates": lambda n: "/v1/plain/" + "%ED%A0%80" * n + "/anything",
    "bad escapes": lambda n: "/v1/plain/" + "%4" * n + "/anything",
    "percent signs": lambda n: "/v1/plain/" + "%" * n + "/anything",
    "long names": lambda n: "/v1/" + "a" * n + "/a/" + "b" * n,
}


@pytest.mark.parametrize("case", PATHS)
def test_paths(case: str) -> None:
    check_linear(head.parse, PATHS[case])


@pytest.mark.parametrize(
    "text", ["9", "-", "0", " ", "[", "[1,", '["', '\\"', "\u0660", "e", '[1,"\\ud800', "{", "1_", "\u0301"]
)
@pytest.mark.parametrize("operator", [plain, counted, paired], ids=lambda each: each.name)
def test_keys(operator: Operator, text: str) -> None:
    for tail in ("", '"]', "]"):
        check_linear(lambda key: head.key_of(key, operator, {}), lambda n, tail=tail: text * n + tail)  # type: ignore[misc]
        check_linear(lambda key: head.key_of(key, operator, {}), lambda n, tail=tail: "[" + text * n + tail)  # type: ignore[misc]


def test_a_number_with_too_many_digits_is_no_key() -> None:
    # Whatever Python's own limit on digits is set to.
    for text in ("9" * 3000, "0" * 3000 + "7"):
        with pytest.raises(Exception, match="must be a decimal number"):
            counted.key_type.parse(text, "counted")
    assert counted.key_type.parse("0" * 100 + "7", "counted") == 7


def test_headers() -> None:
    def read(value: bytes) -> None:
        for name in (b"idempotency-key", b"styx-timeout"):
            for function in (
                lambda h: head.idempotency_key(h, None),
                lambda h: head.timeout_seconds(h, 1.0),
            ):
                try:
                    function({name: value})
                except Exception:  # noqa: BLE001 - most are refused
                    pass

    for text in (b"9", b".", b"9.", b"\xff", b" ", b"a", b"\\", b"1e"):
        check_linear(read, lambda n, text=text: text * n)  # type: ignore[misc]
        check_linear(lambda v: asyncio.run(parts_of([b""]).read(100, v)), lambda n, text=text: text * n)  # type: ignore[misc]
        check_linear(bulk_load._options, lambda n, text=text: b"replace=" + text * n)  # type: ignore[misc]
    for text in (b"&", b"=", b"a=b&", b"%41", b"%", b"+", b";"):
        check_linear(bulk_load._options, lambda n, text=text: text * n)  # type: ignore[misc]


def parts_of(parts: list[bytes]) -> IncomingBody:
    todo = iter(parts)
    left = len(parts)

    async def receive() -> dict[str, Any]:
        nonlocal left
        left -= 1
        return {"type": "http.request", "body": next(todo), "more_body": left > 0}

    return IncomingBody(receive)


@pytest.mark.parametrize("part", [b"x", b"x" * 200, b"\n", b'[1,"'])
def test_a_body_in_small_parts(part: bytes) -> None:
    """A sender decides how small they are."""
    limit = 10**9

    async def lines(parts: list[bytes]) -> None:
        async for _ in bulk_load._lines(parts_of(parts), limit, 600.0):
            pass

    async def pairs(parts: list[bytes]) -> None:
        async for _ in bulk_load._msgpack_pairs(parts_of(parts), limit, 600.0):
            pass

    for read in (lines, pairs, lambda parts: parts_of(parts).read(limit)):
        check_linear(lambda parts, read=read: asyncio.run(read(parts)), lambda n: [part] * n, N // 4)  # type: ignore[misc]


def test_lines_are_the_same_in_any_parts() -> None:
    random_ = random.Random(7)
    for _ in range(200):
        body = bytes(random_.choice(b"ab\n\n\r ") for _ in range(random_.randrange(60)))
        cuts = sorted(random_.randrange(len(body) + 1) for _ in range(random_.randrange(6)))
        parts = [body[a:b] for a, b in zip([0, *cuts], [*cuts, len(body)], strict=True)]

        async def read(parts: list[bytes] = parts) -> list[bytes]:
            return [line async for line in bulk_load._lines(parts_of(parts), 1000, 600.0)]

        assert asyncio.run(read()) == [line for line in body.split(b"\n") if line.strip()]


MSGPACK: dict[str, Callable[[int], bytes]] = {
    "arrays in arrays": lambda n: b"\x91" * n,
    "maps in maps": lambda n: b"\x81\xa1a" * n,
    "an array that says it is longer": lambda n: b"\xdd\xff\xff\xff\xff" + b"\0" * n,
    "a map that says it is longer": lambda n: b"\xdf\xff\xff\xff\xff" + b"\0" * n,
    "text that is none": lambda n: b"\xdb" + n.to_bytes(4, "big") + b"\xc3" * n,
    "a time of many digits": lambda n: b"\xc9" + n.to_bytes(4, "big") + b"\x01" + b"9" * n,
    "times that are none": lambda n: b"\xdc\xff\xff" + b"\xd4\x019" * n,
    "unknown extensions": lambda n: b"\xc9" + n.to_bytes(4, "big") + b"\x63" + b"9" * n,
    "nothing": lambda n: b"\xc0" * n,
    "zeros": bytes,
    "noise": lambda n: random.Random(n).randbytes(n),
}


@pytest.mark.parametrize("case", MSGPACK)
def test_msgpack(case: str) -> None:
    """Of records in topics, of replies and of results."""
    for read in (decode_request, decode_plain, result_json, plain.function("typed").signature.decode):
        check_linear(read, MSGPACK[case])
    wrapped = msgspec.msgpack.Encoder()

    def request(n: int) -> bytes:
        return wrapped.encode(["id", "plain", "k", "anything", b"\x91" + MSGPACK[case](n)])

    check_linear(lambda payload: decode_plain(decode_request(payload).params), request)


FIELDS = ("request_id", "operator", "function", "key", "idempotency_key", "params")


@pytest.mark.parametrize("field", FIELDS)
def test_records_of_the_requests(field: str) -> None:
    """Anybody may append them, with fields as long as a record may be."""
    good = Request("id", "plain", "k", "anything", b"\x90")

    def record(n: int) -> bytes:
        value: Any = b"\x91" * n if field == "params" else "\u00e9" * n
        return encode_request(msgspec.structs.replace(good, **{field: value}))

    admission = Admission(app, Limits(request_bytes_max=10**9), 1)

    def admit(payload: bytes) -> None:
        admission.readmit(0, PendingTransaction(1, 0, 0, payload, False, False, {}, []))

    check_linear(admit, record)
    check_linear(
        lambda payload: admission.admit(0, 1, (0, 0, payload), ReplyMemory(SlotState(), 10, 10**9)),
        record,
    )


def batches(n: int) -> bytes:
    builder = DefaultRecordBatchBuilder(2, 0, 0, -1, -1, -1, 10**9)
    for offset in range(n // 8):
        builder.append(offset, 0, None, b"?", [("h", b"")] * 8)
    return bytes(builder.build())


def test_batches_of_records() -> None:
    check_linear(lambda data: list(Chunk(0, 0, data).records(0)), batches)
    check_linear(lambda data: list(Chunk(0, 0, data).records(0, lambda _: None)), batches)
    check_linear(lambda data: list(Chunk(0, 0, data).records(0)), os.urandom)


def pieces(size: int, data: bytes) -> Iterator[bytes]:
    return (data[at : at + size] for at in range(0, len(data), size))


@pytest.mark.parametrize("size", [1, 1000])
def test_frames(size: int) -> None:
    def read(data: bytes) -> None:
        reader = FrameReader()
        for piece in pieces(size, data):
            reader.feed(piece)

    def opening(data: bytes) -> None:
        received = bytearray()
        for piece in pieces(size, data):
            received += piece
            while take_frame(received, UNAUTHENTICATED_FRAME_BYTES_MAX) is not None:
                pass

    for make in (
        bytes,
        lambda n: n.to_bytes(4, "big") + bytes(n),
        lambda n: b"\0\0\0\1x" * (n // 5),
        lambda n: (n + 1).to_bytes(4, "big") + bytes(n),
    ):
        check_linear(read, make)
    check_linear(opening, lambda n: b"\0\0\0\1x" * (n // 5))
    with pytest.raises(FrameTooLarge):
        opening((N).to_bytes(4, "big"))


def test_addresses() -> None:
    for text in ("9", ":", "[", "[::", "a", "\u0660"):
        check_linear(parse_address, lambda n, text=text: text * n)  # type: ignore[misc]
        check_linear(parse_address, lambda n, text=text: "host:" + text * n)  # type: ignore[misc]


def test_the_measure_finds_what_is_quadratic() -> None:
    def quadratic(n: int) -> None:
        text = "x" * n
        for at in range(0, n, 16):
            text[at:].count("y")

    with pytest.raises(AssertionError):
        check_linear(quadratic, lambda n: n)
