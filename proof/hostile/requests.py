"""Requests that are wrong in one way each, with the statuses that may answer them; sent to a gateway, one by one and
behind one another.

None of them is a request of the app. So no answer may be a success or a server's error, and each refusal must give a
reason. Any other answer raises `BankFailed`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from random import Random
from typing import Final, NamedTuple

import msgspec

from proof.hostile.bank import BankFailed
from proof.hostile.target import HttpAnswer, Target, closed, next_answer, send

MIB: Final = 1024 * 1024
NOISE: Final = 40
"""The number of pieces of random bytes."""
REFUSED: Final = frozenset({400, 401, 403, 404, 405, 408, 409, 411, 413, 414, 415, 422, 429, 431, 501, 505})


class Wrong(NamedTuple):
    """A wrong request and its allowed statuses. `closes`: the connection may also be closed without an answer."""

    name: str
    data: bytes
    statuses: frozenset[int] = REFUSED
    closes: bool = False


def wrong_requests(target: Target, path: str, seed: int) -> Iterator[Wrong]:
    """Makes the wrong requests. `path` is that of a function's call, `/v1/OPERATOR/KEY/FUNCTION`."""
    _, v1, operator, _, function = path.split("/")
    yield from _paths(target, f"/{v1}/{operator}", function)
    yield from _headers(target, path)
    yield from _bodies(target, path)
    yield from _lengths(target, path)
    yield from _methods(target, path)
    random = Random(seed)
    for number in range(NOISE):
        yield Wrong(f"noise {number}", random.randbytes(random.randrange(1, 4000)) + b"\r\n\r\n", closes=True)


def _paths(target: Target, operator: str, function: str) -> Iterator[Wrong]:
    for name, key in {
        "%2F": "%2F%2F..%2F",
        "%00": "a%00b",
        "half a surrogate": "%ED%A0%80",
        "two halves": "%ED%A0%BD%ED%B8%80",
        "no UTF-8": "%FF%FE",
        "too short UTF-8": "%C0%AF",
        "broken escape": "a%4",
        "escape of nothing": "%zz",
        "overlong": "k" * 3_000,
        "overlong, escaped": "%41" * 3_000,
        "dots": "..",
        "empty": "",
        "a question mark": "a%3Fb",
        "combining marks": "%CC%81" * 1_000,
    }.items():
        yield Wrong(f"key: {name}", target.post(f"{operator}/{key}/{function}-none"))
    for name, path in {
        "slashes": "/" * 5_000,
        "of another place": "/v1/../../etc/passwd",
        "a long name": f"/v1/{'o' * 5_000}/a/b",
        "escapes in names": "/v1/%2e%2e/%2e%2e/%00",
        "nothing": "/v1",
    }.items():
        yield Wrong(f"path: {name}", target.post(path))


def _headers(target: Target, path: str) -> Iterator[Wrong]:
    bad = b'["none", "none", "none"]'  # arguments that no function here takes: never run
    for name, header in {
        "an idempotency key of 2 MiB": "Idempotency-Key: " + "k" * (2 * MIB),
        "an idempotency key of 2 kB": "Idempotency-Key: " + "k" * 2_000,
        "an idempotency key with blanks": "Idempotency-Key: a b",
        "a timeout that is none": "Styx-Timeout: 1e9",
        "a timeout of many digits": "Styx-Timeout: " + "9" * 10_000,
        "a key type that is none": "Styx-Key-Type: " + "x" * 1_000,
        "a header of 1 MiB": "X: " + "x" * MIB,
    }.items():
        yield Wrong(name, target.post(path, bad, header), closes=True)
    yield Wrong("100,000 headers", target.post(path, bad, *(f"X-{n}: {n}" for n in range(100_000))), closes=True)
    yield Wrong("two idempotency keys", target.post(path, bad, "Idempotency-Key: a", "Idempotency-Key: b"))
    yield Wrong("a header without a name", target.post(path, bad, ": none"))
    yield Wrong("a header without a colon", target.post(path, bad, "none"))
    yield Wrong("a header with a NUL", target.post(path, bad, "X: a\0b"))
    yield Wrong("a folded header", target.post(path, bad, "X: a\r\n b"))


def _bodies(target: Target, path: str) -> Iterator[Wrong]:
    for name, body in {
        "quotes that never end": b"[" * 129 + b'"' + b'\\"' * 500_000,
        "deep": b"[" * 500_000,
        "deep and closed": b"[" * 100_000 + b"]" * 100_000,
        "deep objects": b'{"a":' * 150_000,
        "a number of a million digits": b"[" + b"9" * 1_000_000 + b"]",
        "an exponent of many digits": b"[1e" + b"9" * 1_000 + b"]",
        "a key twice": b'{"a":1,"a":2}',
        "a key twice, escaped": b'{"a":1,"\\u0061":2}',
        "a byte order mark": b"\xef\xbb\xbf[]",
        "UTF-16": "[]".encode("utf-16"),
        "UTF-32": "[]".encode("utf-32"),
        "no UTF-8": b'["\xff"]',
        "half a surrogate": b'["\\ud800"]',
        "NaN": b"[NaN]",
        "a NUL": b"[\0]",
        "a million arguments": b"[" + b"0," * 500_000 + b"0]",
        "no JSON": b"<xml/>",
        "two documents": b"[][]",
        "3 MiB": b" " * (3 * MIB),
    }.items():
        yield Wrong(f"body: {name}", target.post(path, body))
        yield Wrong(f"load: {name}", target.post(path.rsplit("/", 2)[0], body))


def _lengths(target: Target, path: str) -> Iterator[Wrong]:
    line, kind = f"POST {target.prefix}{path}", "Content-Type: application/json"
    rest = b'["none", "none", "none"]'
    for name, headers, body in (
        ("two lengths", ("Content-Length: 2", "Content-Length: 3"), rest),
        ("two lengths in one", ("Content-Length: 2, 3",), rest),
        ("a length and chunks", ("Content-Length: 4", "Transfer-Encoding: chunked"), b"0\r\n\r\n"),
        ("chunks and a length", ("Transfer-Encoding: chunked", "Content-Length: 4"), b"0\r\n\r\n"),
        ("a length below zero", ("Content-Length: -1",), rest),
        ("a length of many digits", ("Content-Length: " + "9" * 100,), rest),
        ("a length in hexadecimal", ("Content-Length: 0x10",), rest),
        ("a length with a sign", ("Content-Length: +10",), rest),
        ("chunks that are none", ("Transfer-Encoding: chunked",), b"zz\r\n[]\r\n0\r\n\r\n"),
        ("a chunk of many digits", ("Transfer-Encoding: chunked",), b"f" * 20 + b"\r\n"),
        ("a chunk below zero", ("Transfer-Encoding: chunked",), b"-2\r\n[]\r\n0\r\n\r\n"),
        ("a chunk longer than it says", ("Transfer-Encoding: chunked",), b"1\r\n[]\r\n0\r\n\r\n"),
        ("another encoding", ("Transfer-Encoding: gzip",), rest),
        ("chunked, not last", ("Transfer-Encoding: chunked, identity",), b"0\r\n\r\n"),
        ("an encoding with a blank before the colon", ("Transfer-Encoding : chunked",), b"0\r\n\r\n"),
    ):
        yield Wrong(name, target.head(line, kind, *headers) + body, closes=True)


def _methods(target: Target, path: str) -> Iterator[Wrong]:
    for method in ("GET", "PUT", "DELETE", "PATCH", "TRACE", "MKCOL", "PROPFIND"):
        yield Wrong(f"{method} of a function", target.head(f"{method} {target.prefix}{path}-none"))
    yield Wrong("CONNECT", target.head("CONNECT 127.0.0.1:22"), closes=True)
    yield Wrong("no method", target.head("NONSENSE /"), closes=True)
    yield Wrong("HTTP/2", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", closes=True)
    yield Wrong("HTTP/9.9", b"GET / HTTP/9.9\r\n\r\n", closes=True)
    yield Wrong("HTTP/0.9", b"GET /\r\n\r\n", closes=True)
    yield Wrong("TLS, or none", b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(509), closes=True)


PIPELINED: Final = 100
MESSAGE_CHARS_MIN: Final = 10
MESSAGE_CHARS_MAX: Final = 2_000


async def send_wrong(target: Target, path: str, seed: int) -> str:
    """Sends each wrong request on a separate connection."""
    by_status: dict[int, int] = {}
    for wrong in wrong_requests(target, path, seed):
        async with target.connected() as streams:
            sending = asyncio.create_task(send(streams, wrong.data))
            answer = await next_answer(streams[0])
            sending.cancel()
            await asyncio.wait([sending])
        _check(wrong, answer)
        by_status[answer.status] = by_status.get(answer.status, 0) + 1
    shown = ", ".join(f"{count} x {status or 'closed'}" for status, count in sorted(by_status.items()))
    return f"{sum(by_status.values())} refused: {shown}"


def _check(wrong: Wrong, answer: HttpAnswer) -> None:
    if answer.status == 0:
        if not wrong.closes:
            raise BankFailed(f"{wrong.name}: the connection was closed without an answer")
        return
    if answer.status not in wrong.statuses:
        raise BankFailed(f"{wrong.name}: answered with {answer.status} {answer.body[:300]!r}")
    try:
        message = msgspec.json.decode(answer.body)["error"]["message"]
    except (msgspec.DecodeError, KeyError, TypeError):
        raise BankFailed(f"{wrong.name}: {answer.status} does not say why: {answer.body[:300]!r}") from None
    if not MESSAGE_CHARS_MIN <= len(message) <= MESSAGE_CHARS_MAX:
        raise BankFailed(f"{wrong.name}: a message of {len(message)} characters")


async def behind_one_another(target: Target, path: str) -> str:
    """Sends many requests in one write, and checks that their answers come in turn. Garbage after them must not change
    an answer. Requests hidden in bytes that another server might take for a body must not be answered.
    """
    request = target.post(path, b'["none"]')
    async with target.connected() as streams:
        await send(streams, request * PIPELINED + b"garbage\r\n\r\n")
        for number in range(PIPELINED):
            answer = await next_answer(streams[0])
            if answer.status not in (404, 409, 422, 429):
                raise BankFailed(f"request {number} of {PIPELINED} in a row: {answer.status} {answer.body[:300]!r}")
        last = await next_answer(streams[0])
        if last.status not in (0, 400):
            raise BankFailed(f"garbage behind requests: {last.status} {last.body[:300]!r}")
    for smuggled in _smuggled(target, path, request):
        async with target.connected() as streams:
            await send(streams, smuggled)
            if streams[1].can_write_eof():  # not in TLS, where the gateway ends a silent connection
                streams[1].write_eof()
            answers = (await closed(streams[0])).count(b"HTTP/1.1 ")
            if answers > 1:
                raise BankFailed(f"{answers} answers to one request: {smuggled[:200]!r}")
    return f"{PIPELINED} in a row, and none within another one"


def _smuggled(target: Target, path: str, inner: bytes) -> list[bytes]:
    line = f"POST {target.prefix}{path}"
    return [
        target.head(line, "Transfer-Encoding: chunked", "Content-Length: 6") + b"0\r\n\r\n" + inner,
        target.head(line, "Content-Length: 6", "Transfer-Encoding: chunked") + b"0\r\n\r\n" + inner,
        target.head(line, "Content-Length: 0", f"Content-Length: {len(inner)}") + inner,
        target.head(line, "Transfer-Encoding: x", "Transfer-Encoding: chunked") + b"zz\r\n" + inner,
        target.head(line, "Transfer-Encoding:\x0bchunked", f"Content-Length: {len(inner)}") + inner,
    ]


async def hang_up(target: Target, path: str, count: int) -> str:
    """Clients that close their connections in the middle of a request, and right after it."""
    whole = target.post(path, b'["none"]')
    for number in range(count):
        async with target.connected() as streams:
            await send(streams, whole[: number * len(whole) // count + 1])
            if number % 2:
                streams[1].transport.abort()
    return f"{count} in the middle of a request"
