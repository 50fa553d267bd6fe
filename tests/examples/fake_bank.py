"""A bank behind the client's interface that runs serially and at once, and can be made to break one promise."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import msgspec

from examples.bank import app
from styx.client.base import Client
from styx.client.load import LoadTarget
from styx.messages import Reply, ReplyError, Request
from styx.testing.serial import SerialReference


class FakeBank(Client):
    """`before` is called with each request's number and may raise or give another reply; `change` falsifies replies."""

    def __init__(self) -> None:
        self.requests = 0
        self.before: Callable[[int, str], Reply | None] = lambda number, function: None
        self.change: Callable[[int, str, Reply], Reply] = lambda number, function, reply: reply
        self.after: Callable[[int], None] = lambda number: None
        self.remembers = True
        self.reference = SerialReference(app)
        self._replies: dict[str, Reply] = {}
        self._epoch = 0

    def submit(self, operator: Any, key: Any, function: Any, *args: Any, **options: Any) -> Awaitable[Reply]:
        return self._answer(key, function, args, options["idempotency_key"] or "")

    async def request(self, operator: Any, key: Any, function: Any, *args: Any, **options: Any) -> Reply:
        options.setdefault("idempotency_key", None)
        return await self.submit(operator, key, function, *args, **options)

    def load_target(self, operator: Any, replace: bool, timeout: float) -> LoadTarget:
        raise NotImplementedError

    async def close(self) -> None: ...

    async def _answer(self, key: str, function: str, args: tuple[Any, ...], idempotency_key: str) -> Reply:
        self.requests += 1
        number = self.requests
        await asyncio.sleep(0)
        refused = self.before(number, function)
        if refused is not None:
            return refused
        reply = self._replies.get(idempotency_key) if self.remembers else None
        if reply is None:
            reply = self.change(number, function, self.run(key, function, args))
            self._replies[idempotency_key] = reply
        # Replies of an epoch come in any order.
        await asyncio.sleep(0.001 * (number % 3))
        self.after(number)
        return reply

    def run(self, key: str, function: str, args: tuple[Any, ...]) -> Reply:
        """Runs it, once more if it ran before."""
        self._epoch += 1
        request = Request("", "account", key, function, msgspec.msgpack.encode(args))
        outcome = self.reference.run(self._epoch, 0, request)
        if outcome.error is not None:
            code, kind, message = outcome.error
            return Reply(None, ReplyError(kind, message, code), self._epoch, self._epoch, 0, "id")
        result = msgspec.msgpack.decode(outcome.result or b"")
        return Reply(result, None, self._epoch, self._epoch, 0, "id")
