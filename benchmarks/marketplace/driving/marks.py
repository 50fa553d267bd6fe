"""Watches for the marks that say how checkouts have ended. A checkout's reply says that there is an order; its payment
is often a transaction of its own, and only then the mark comes.
"""

from __future__ import annotations

import asyncio
import time
from typing import Any, Final

from benchmarks.marketplace.answers import CheckoutOutcome
from benchmarks.marketplace.driving.witness import record_of
from benchmarks.marketplace.events import transaction_mark
from benchmarks.marketplace.record import Ended, Kind, MarkSeen, Record, now_us
from styx.client.base import Client
from styx.model.event_seen import END

PATIENCE_SECONDS: Final = 60.0
"""How long the marks of answered checkouts are waited for, from the last one that came."""
POLL_SECONDS: Final = 0.1
PAUSE_SECONDS: Final = 0.5
"""Until the log of marks is read again after it was cut off."""


class Marks:
    """An `Attendant`. It keeps the marks of the run `run`, whose checkout ids begin with it."""

    def __init__(self, run: str) -> None:
        self._prefix = f"{run}-"
        self._seen: dict[str, MarkSeen] = {}
        self._client: Client | None = None
        self._last_s = 0.0

    async def watch(self, client: Client) -> None:
        """See `Attendant.watch`. While the deployment is away it tries again, and goes on where it was."""
        self._client = client
        cursor = END
        while True:
            try:
                async with client.events(transaction_mark, after=cursor) as marks:
                    async for seen in marks:
                        cursor = seen.cursor
                        self._take(seen.value.tid, seen.value.status, now_us())
            except OSError:
                await asyncio.sleep(PAUSE_SECONDS)

    async def settle(self, witnesses: list[Any]) -> None:
        """See `Attendant.settle`: every order has been paid or not. Raises `TimeoutError` if one stays open."""
        waited = open_orders(record_of(witnesses))
        self._last_s = time.monotonic()
        while waited - self._seen.keys():
            if time.monotonic() - self._last_s > PATIENCE_SECONDS:
                await self._read_again(waited)
                return
            await asyncio.sleep(POLL_SECONDS)

    def witness(self) -> dict[str, Any]:
        """See `Attendant.witness`."""
        return {"marks": [[mark.session, mark.status, mark.seen_us] for mark in self._seen.values()]}

    def _take(self, session: str, status: str, seen_us: int) -> None:
        if session.startswith(self._prefix) and session not in self._seen:
            self._seen[session] = MarkSeen(session, status, seen_us)
            self._last_s = time.monotonic()

    async def _read_again(self, waited: set[str]) -> None:
        """Marks from before the watch began are in the log, without a time at which they were seen."""
        assert self._client is not None
        async with self._client.events(transaction_mark, follow=False) as marks:
            async for seen in marks:
                self._take(seen.value.tid, seen.value.status, 0)
        missing = waited - self._seen.keys()
        if missing:
            raise TimeoutError(
                f"{len(missing)} orders were neither paid nor failed within {PATIENCE_SECONDS:g} s of the last one, "
                f"such as that of the checkout {min(missing)}: is the payment provider reached? `styx dead` lists "
                "payments that were given up"
            )


def open_orders(record: Record) -> set[str]:
    """The checkouts that have placed an order."""
    return {
        asked.session
        for asked in record
        if asked.kind in (Kind.CHECKOUT, Kind.CHECKOUT_AGAIN)
        and asked.ended is Ended.COMMITTED
        and asked.result["outcome"] == CheckoutOutcome.ACCEPTED
    }
