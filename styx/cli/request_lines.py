"""A line for each request of `styx dev`: its status, its entity and function, how long it took, its epoch.

The lines are made from the answers as they leave. Under load a line a second sums up the answers instead.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from statistics import median
from time import perf_counter
from typing import Final
from urllib.parse import unquote

import msgspec

from styx.gateway.head import PREFIX, SQL_PATH
from styx.http.asgi import Application, Message, Receive, Scope, Send
from styx.http.direct import Direct
from styx.http.direct_request import DirectRequest
from styx.reports.json_lines import FIELDS
from styx.reports.mistakes import printable

LINES_PER_SECOND_MAX: Final = 100
"""Requests in one second that get a line of their own; a line sums up the others."""
BODY_BYTES_MAX: Final = 16 * 1024
"""Bytes of an answer that are read for its epoch and its error."""
PATH_CHARS_MAX: Final = 200
KINDS_MAX: Final = 5
"""Kinds of answers that a summary names."""
SLOWEST_SAMPLES_MAX: Final = 100_000


_log = logging.getLogger("styx.requests")


class _Place(msgspec.Struct):
    epoch: int | None = None


class _Error(msgspec.Struct):
    type: str = ""


class _Body(msgspec.Struct):
    transaction: _Place = msgspec.field(default_factory=_Place)
    error: _Error = msgspec.field(default_factory=_Error)


_decode = msgspec.json.Decoder(_Body).decode


class RequestLines:
    """Wraps the gateway's application."""

    def __init__(self, application: Application) -> None:
        self._application = application
        self._second = -1
        self._told = 0
        self._silent: Counter[str] = Counter()
        self._took_ms: list[float] = []

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """The ASGI interface."""
        if scope["type"] != "http" or PREFIX not in scope["path"]:
            await self._application(scope, receive, send)
            return
        began_s = perf_counter()
        status, body = 0, bytearray()

        async def watched(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            elif message["type"] == "http.response.body" and len(body) <= BODY_BYTES_MAX:
                body.extend(message.get("body", b""))
            await send(message)

        try:
            await self._application(scope, receive, watched)
        finally:
            self.ended(scope, status, bytes(body), (perf_counter() - began_s) * 1000)

    def around(self, direct: Direct) -> Direct:
        """As `AroundDirect`."""
        return _DirectLines(self, direct)

    def ended(self, scope: Scope, status: int, body: bytes, took_ms: float) -> None:
        """Tells of a request, answered with `status` (0 if its client was gone) after `took_ms` milliseconds."""
        kind, epoch = _seen(body)
        loop = asyncio.get_running_loop()
        second = int(loop.time())
        if second != self._second:
            self._second, self._told = second, 0
        self._told += 1
        if self._told > LINES_PER_SECOND_MAX:
            if not self._silent:
                loop.call_later(1.0, self._sum_up)
            self._silent[f"{status} {kind}".strip()] += 1
            if len(self._took_ms) < SLOWEST_SAMPLES_MAX:
                self._took_ms.append(took_ms)
            return
        place = request_name(scope)
        words = [str(status) if status else "client gone", place, kind, f"{took_ms:.1f} ms"]
        words += [] if epoch is None else [f"epoch {epoch}"]
        fields = {"message": f"{status} {place}", "status": status, "request": place, "milliseconds": round(took_ms, 3)}
        fields |= {"error": kind} if kind else {}
        fields |= {} if epoch is None else {"epoch": epoch}
        _log.info("%s", " ".join(filter(None, words)), extra={FIELDS: fields})

    def _sum_up(self) -> None:
        count, took_ms = self._silent.total(), self._took_ms
        kinds = self._silent.most_common(KINDS_MAX)
        self._silent, self._took_ms = Counter(), []
        ends = ", ".join(f"{number:,} × {kind}" for kind, number in kinds)
        text = f"{count:,} more requests: {ends}; median {median(took_ms):.1f} ms, slowest {max(took_ms):.1f} ms"
        _log.info("%s", text, extra={FIELDS: {"message": text, "requests": count, "ends": dict(kinds)}})


class _DirectLines:
    """A direct way whose answers get lines."""

    def __init__(self, lines: RequestLines, direct: Direct) -> None:
        self.takes = direct.takes
        self._lines = lines
        self._direct = direct

    def serve(self, request: DirectRequest) -> None:
        began_s = perf_counter()

        def answered(status: int, body: bytes) -> None:
            self._lines.ended(request.scope(), status, body, (perf_counter() - began_s) * 1000)

        request.answered += (answered,)
        self._direct.serve(request)


def request_name(scope: Scope) -> str:
    """The entity and function of a request, such as `account/alice.transfer`, made printable."""
    raw = scope.get("raw_path") or scope["path"].encode()
    path = raw.decode("ascii", "replace").partition("?")[0]
    parts = [unquote(part) for part in path.partition(PREFIX)[2].split("/", 2)]
    name = "/".join(parts[:2]) + "".join(f".{part}" for part in parts[2:])
    if scope["method"] != "POST":
        name = f"{scope['method']} {name}"
    elif len(parts) == 1 and path != SQL_PATH:
        name += " (load)"
    name = name if name.isprintable() else ascii(name)
    return name if len(name) <= PATH_CHARS_MAX else f"{name[:PATH_CHARS_MAX]}…"


def _seen(body: bytes) -> tuple[str, int | None]:
    """(type of the error, epoch) of an answer; "" and None if it has none."""
    if len(body) > BODY_BYTES_MAX:
        return "", None
    try:
        decoded = _decode(body)
    except (msgspec.DecodeError, RecursionError):
        return "", None
    return printable(decoded.error.type), decoded.transaction.epoch
