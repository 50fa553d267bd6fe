"""The load of the bill: so many transfers at once, and the next ones a while after all are answered."""

from __future__ import annotations

import asyncio
import random
from typing import Final, cast

from benchmarks.ycsbt.bank import Account, account, transfer
from styx.client.base import Client
from styx.messages import Reply

KEYS: Final = 10_000
PAUSE_SECONDS: Final = 0.01
"""Between two bursts."""
_MONEY: Final = 1_000_000
_PATIENCE_SECONDS: Final = 60.0


async def open_accounts(client: Client) -> None:
    """All accounts, with money for all transfers."""
    await client.load(account, ((key, Account(_MONEY)) for key in range(KEYS)))


class Bursts:
    """Transfers between accounts that are drawn uniformly, on behalf of one client."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._draw = random.Random(1).randrange

    async def run(self, size: int, number: int) -> int:
        """So many bursts of `size` transfers, each of which must commit; gives the number of epochs that they took."""
        epochs = set[int]()
        for _ in range(number):
            for reply in await asyncio.gather(*[self._sent() for _ in range(size)]):
                reply.unwrap()
                epochs.add(reply.epoch)
            await asyncio.sleep(PAUSE_SECONDS)
        return len(epochs)

    def _sent(self) -> asyncio.Future[Reply]:
        debtor = self._draw(KEYS)
        creditor = (debtor + 1 + self._draw(KEYS - 1)) % KEYS
        sent = self._client.submit(account, debtor, transfer, creditor, 1, timeout=_PATIENCE_SECONDS)
        return cast("asyncio.Future[Reply]", sent)
