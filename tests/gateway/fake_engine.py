"""An engine without state, log or order: it runs each request's function at once, or is told to hold or refuse it."""

import asyncio
import math
from collections.abc import Awaitable
from datetime import UTC, datetime
from decimal import Decimal
from types import SimpleNamespace
from typing import Any

import msgspec

from styx import App, Context, Limits, Operator
from styx.errors import InTransactionError, describe
from styx.host.waiters import Receiver
from styx.messages import ReplyRecord, Request, decode_request
from styx.model.changes import ChangeSource
from styx.model.event_seen import EventLog
from styx.model.freshness import Freshness
from styx.model.function_spec import READ_FUNCTION, READ_ROWS_FUNCTION
from styx.model.request import AppRouter, Placed, RequestMaker
from styx.protocol.reads import READ_PHASE

shelf = Operator("shelf")
numbered = Operator("numbered", key_type=int)
paired = Operator("paired", key_type=(int, str))


class Point(msgspec.Struct):
    x: int
    y: int = 0

    def __post_init__(self) -> None:
        if self.x < 0:
            raise LookupError("x is below zero")


class OutOfStock(Exception): ...


@shelf.register
async def echo(ctx: Context, value: Any) -> Any:
    """Gives back what it gets.

    Values are not interpreted: <b>&amp;</b> stays what it is.
    """
    return value


@shelf.register
async def add(ctx: Context, left: int, right: int = 1) -> int:
    """Adds two numbers."""
    return left + right


@shelf.register
async def typed(ctx: Context, raw: bytes, when: datetime, price: Decimal, point: Point, counts: dict[int, int]) -> str:
    return repr((raw, when, price, point, counts))


@shelf.register
async def gather(ctx: Context, first: int, *others: int) -> list[int]:
    return [first, *others]


@shelf.register
async def options(ctx: Context, name: str, *, loud: bool, **rest: int) -> str:
    return f"{name} {loud} {sorted(rest.items())}"


@shelf.register
async def key(ctx: Context) -> str:
    return repr(ctx.key)


@shelf.register
async def odd(ctx: Context) -> Any:
    return {1: math.nan, None: b"\xff", (1, 2): datetime(2026, 1, 2, tzinfo=UTC), False: -math.inf}


@shelf.register
async def unwritable(ctx: Context) -> Any:
    return msgspec.msgpack.Ext(99, b"what no client knows")


@shelf.register
async def fail(ctx: Context, message: str) -> None:
    raise OutOfStock(message)


@shelf.register(read_only=True)
async def look(ctx: Context, width: int = 1, label: str = "none") -> str:
    return f"{ctx.key} {width} {label}"


numbered.register(key)
paired.register(key)

app = App("shop <1>", operators=[shelf, numbered, paired])


class FakeEngine:
    """Answers in the order asked for, with TIDs 1, 2, 3 …; every public attribute may be set by a test."""

    def __init__(self, limits: Limits | None = None) -> None:
        self.app = app
        self.limits = limits or Limits()
        self.n_slots = 4
        self.reset()

    def reset(self) -> None:
        """Forgets all requests and all it was told."""
        self.unavailable_reason: str | None = None
        self.broken_reason: str | None = None
        self.in_flight = 0
        self.requests: list[Request] = []
        self.error: BaseException | None = None
        self.outcome: BaseException | None = None
        self.state: bytes | None = None
        self.reply_error: tuple[str, str, str] | None = None
        self.held: list[asyncio.Future[None]] | None = None
        self._arrived = asyncio.Event()
        self._by_idempotency_key: dict[str, ReplyRecord] = {}

    @property
    def maker(self) -> RequestMaker:
        return RequestMaker(AppRouter(self.app, self.n_slots), 2**30)  # a body may be at its limit

    @property
    def changes(self) -> ChangeSource:
        raise AssertionError("nobody follows the changes of a fake engine")

    @property
    def events(self) -> EventLog:
        raise AssertionError("the app here has no events")

    def submit_request(self, request: Placed) -> Awaitable[ReplyRecord]:
        if self.error is not None:
            raise self.error
        decoded = decode_request(request.payload)
        self.requests.append(decoded)
        self._arrived.set()
        waiting: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        if self.held is None:
            waiting.set_result(None)
        else:
            self.held.append(waiting)
        return self._answer(decoded, waiting)

    def send_request(self, request: Placed, seconds: float, receiver: Receiver) -> None:
        answering = asyncio.ensure_future(asyncio.wait_for(self.submit_request(request), seconds))

        def ended(answered: asyncio.Future[ReplyRecord]) -> None:
            error = answered.exception()
            if not receiver.done():
                if error is None:
                    receiver.set_result(answered.result())
                else:
                    receiver.set_exception(error)

        answering.add_done_callback(ended)

    def read(self, request: Placed, freshness: Freshness) -> Awaitable[ReplyRecord]:
        if self.error is not None:
            raise self.error
        return self._read(self.submit_request(request), freshness)

    def hold(self) -> None:
        """From now on requests wait for `release`."""
        self.held = []

    def release(self) -> None:
        """Answers all requests that wait."""
        held, self.held = self.held or [], None
        for waiting in held:
            if not waiting.cancelled():
                waiting.set_result(None)

    async def arrived(self) -> None:
        """Returns once a request has come."""
        await self._arrived.wait()

    def metrics(self) -> str:
        return "engine_up 1\n"

    async def _read(self, answering: Awaitable[ReplyRecord], freshness: Freshness) -> ReplyRecord:
        """A read at the epoch that is asked for, or at the ninth one."""
        record = await answering
        epoch = 9 if freshness.at is None else freshness.at
        return ReplyRecord(record.request_id, 0, 0, epoch, READ_PHASE, record.result, record.error)

    async def _answer(self, request: Request, waiting: asyncio.Future[None]) -> ReplyRecord:
        await waiting
        if self.outcome is not None:
            raise self.outcome
        again = self._by_idempotency_key.get(request.idempotency_key)
        if again is not None:
            return again
        tid = len(self.requests)
        record = ReplyRecord(request.request_id, tid, tid, 7, 1, *self._run(request))
        if request.idempotency_key:
            self._by_idempotency_key[request.idempotency_key] = record
        return record

    def _run(self, request: Request) -> tuple[bytes, tuple[str, str, str] | None]:
        if self.reply_error is not None:
            return b"", self.reply_error
        operator = self.app.operator(request.operator)
        if request.function in (READ_FUNCTION, READ_ROWS_FUNCTION):
            nothing = ("aborted", "UnknownEntity", f"{operator.name}[{request.key!r}] has no state")
            return (b"", nothing) if self.state is None else (self.state, None)
        spec = operator.function(request.function)
        context: Any = SimpleNamespace(key=operator.check_key(request.key))
        try:
            positional, named = spec.signature.decode(request.params)
            spec.func(context, *positional, **named).send(None)
        except StopIteration as end:
            return msgspec.msgpack.encode(end.value), None
        except InTransactionError as error:
            return b"", (error.code, *describe(error))
        except Exception as error:  # noqa: BLE001 - as an engine must: whatever a function raises
            return b"", ("aborted", *describe(error))
        raise AssertionError("the functions here wait for nothing")
