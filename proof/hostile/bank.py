"""Honest clients of the bank in `examples/bank.py`, which work beside hostile ones. Each of their requests must be
answered, and at the end the sum of all money must be unchanged.
"""

from __future__ import annotations

import asyncio
import secrets
from random import Random
from types import TracebackType
from typing import Any, Final, Self

import msgspec

from proof.hostile.target import HttpAnswer, Target, next_answer, send

ACCOUNTS: Final = 10
MONEY: Final = 1_000
PAUSE_SECONDS: Final = 0.05
TRIES_MAX: Final = 6_000
"""Limit on the attempts of one request, a tenth of a second apart, because the server may be recovering."""
_TRY_AGAIN: Final = frozenset({0, 429, 503, 504})


class BankFailed(AssertionError):
    """A request got a wrong answer or none, or the sum of all money has changed."""


class Bank:
    """The honest clients, with new accounts. Use as `async with`: transfers run inside of the block."""

    def __init__(self, target: Target, seed: int) -> None:
        self.transfers = 0
        self.longest_s = 0.0
        self._target = target
        self._random = Random(seed)
        self._name = f"hostile-{secrets.token_hex(4)}"
        self._running: asyncio.Task[None] | None = None
        self._stop = False

    async def __aenter__(self) -> Self:
        for number in range(ACCOUNTS):
            await self._request(number, "open", MONEY)
        self._running = asyncio.create_task(self._run())
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._stop = True
        assert self._running is not None
        await asyncio.wait([self._running])
        if error is None:
            self._running.result()

    async def audit(self) -> int:
        """Returns the sum of all balances, read by paying nothing into each account. Raises `BankFailed` if it is
        wrong.
        """
        total: int = sum([await self._request(number, "credit", 0) for number in range(ACCOUNTS)])
        if total != ACCOUNTS * MONEY:
            raise BankFailed(f"the accounts {self._name}-* hold {total} instead of {ACCOUNTS * MONEY}")
        return total

    def check(self) -> None:
        """Raises the error that ended the transfers, if there is one."""
        if self._running is not None and self._running.done():
            self._running.result()

    @property
    def path(self) -> str:
        """The path of a call that does no harm."""
        return f"/v1/account/{self._name}-none/credit"

    async def _run(self) -> None:
        loop = asyncio.get_running_loop()
        while not self._stop:
            payer, payee = self._random.sample(range(ACCOUNTS), 2)
            began_s = loop.time()
            await self._request(payer, "transfer", f"{self._name}-{payee}", self._random.randint(1, 5))
            self.longest_s = max(self.longest_s, loop.time() - began_s)
            self.transfers += 1
            await asyncio.sleep(PAUSE_SECONDS)

    async def _request(self, account: int, function: str, *arguments: Any) -> Any:
        key = f"Idempotency-Key: {secrets.token_hex(16)}"
        path = f"/v1/account/{self._name}-{account}/{function}"
        answer = HttpAnswer(0, b"", b"")
        for _ in range(TRIES_MAX):
            answer = await self._try(self._target.post(path, msgspec.json.encode(arguments), key, "Connection: close"))
            if answer.status == 200:
                return msgspec.json.decode(answer.body)["result"]
            if answer.status == 409 and b"InsufficientFunds" in answer.body:
                return None
            if answer.status not in _TRY_AGAIN:
                raise BankFailed(f"{path}: {answer.status} {answer.body[:300]!r}; is this the app of examples/bank.py?")
            await asyncio.sleep(0.1)
        raise BankFailed(f"{path} was not answered: {answer.status} {answer.body[:300]!r}")

    async def _try(self, request: bytes) -> HttpAnswer:
        try:
            async with self._target.connected() as streams:
                await send(streams, request)
                return await next_answer(streams[0])
        except (OSError, TimeoutError):
            return HttpAnswer(0, b"", b"")
