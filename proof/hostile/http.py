"""Sends wrong requests to a gateway and looks at what comes back; raises `BankFailed` for what may not come."""

from __future__ import annotations

import asyncio
from typing import Final

import msgspec

from proof.hostile.bank import BankFailed
from proof.hostile.requests import Wrong, wrong_requests
from proof.hostile.target import HttpAnswer, Target, closed, next_answer, send

PIPELINED: Final = 100
MESSAGE_CHARS_MIN: Final = 10
MESSAGE_CHARS_MAX: Final = 2_000


async def send_wrong(target: Target, path: str, seed: int) -> str:
    """Each on a connection of its own."""
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
    """Many requests in one write, each with its answer in turn; garbage behind them changes none of these; and requests
    within what another server could take for a body are no requests.
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
            if streams[1].can_write_eof():  # not in TLS, where the gateway ends what stands still
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
    """Clients that go in the middle of their request, and right behind it."""
    whole = target.post(path, b'["none"]')
    for number in range(count):
        async with target.connected() as streams:
            await send(streams, whole[: number * len(whole) // count + 1])
            if number % 2:
                streams[1].transport.abort()
    return f"{count} in the middle of a request"
