"""A million transactions through one durable engine, one in a hundred aborting; prints memory along the way.

Run in a process of its own by `test_flat_memory`: `python million.py DIRECTORY TRANSACTIONS`. Each line is the
number of transactions so far, resident bytes and the size of the data directory.
"""

from __future__ import annotations

import asyncio
import os
import random
import sys
from pathlib import Path

import styx
from styx.process.memory import tune_collector

BATCH = 2_000
KEYS = 1_000

account = styx.Operator("account", key_type=int)


class Refused(Exception):
    """One in a hundred is."""


@account.register
async def credit(ctx: styx.Context, amount: int) -> None:
    await ctx.put(await ctx.get(0) + amount)


@account.register
async def pay(ctx: styx.Context, to: int, amount: int, refused: bool) -> int:
    balance = await ctx.get(0) - amount
    await ctx.put(balance)
    ctx.call_async(account, credit, to, (amount,))
    if refused:
        raise Refused(f"payment of {amount}")
    return int(balance)


app = styx.App("million", [account])


def resident_bytes() -> int:
    """Memory of this process."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def stored_bytes(directory: Path) -> int:
    """Size of the files below `directory`."""
    return sum(file.stat().st_size for file in directory.rglob("*") if file.is_file())


async def main(directory: Path, transactions: int) -> None:
    """Pays around among a thousand accounts; the sum stays 0."""
    rng = random.Random(1)
    async with styx.embedded(app, data_dir=directory, snapshot_interval=0.5) as client:
        tune_collector()
        refused = 0
        for start in range(0, transactions, BATCH):
            replies = await asyncio.gather(
                *(
                    client.submit("account", rng.randrange(KEYS), "pay", rng.randrange(KEYS), 1, i % 100 == 0)
                    for i in range(start, start + BATCH)
                )
            )
            refused += sum(reply.error is not None for reply in replies)
            if (start + BATCH) % (transactions // 10) == 0:
                print(start + BATCH, resident_bytes(), stored_bytes(directory), flush=True)
        assert refused == transactions // 100, refused
        balances = [client.entity("account", key) for key in range(KEYS)]
        assert sum(balance or 0 for balance in balances) == 0


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), int(sys.argv[2])))
