"""The best number of connections for a workload. Each number is tried for a short time, with all connections busy. It
sends the workload's requests, so the table must be filled anew afterwards.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Final

from benchmarks.driver.workload import Workload
from benchmarks.reference.postgres_client import ACCESS_DEFAULT, Access, PostgresClient
from benchmarks.reference.postgres_deployment import fill
from benchmarks.reference.postgres_server import PostgresServer
from styx.messages import Reply

SIZES: Final = (8, 16, 32, 64)
TRY_SECONDS: Final = 1.0
ROUNDS: Final = 3
"""How often each number is tried, in turn; its best round counts, for others may use the machine meanwhile."""
SEED: Final = 99


async def tried(
    server: PostgresServer, workload: Workload, seconds: float = TRY_SECONDS, access: Access = ACCESS_DEFAULT
) -> dict[int, float]:
    """Transactions a second by number of connections, and leaves a table with money moved."""
    rates = dict.fromkeys(SIZES, 0.0)
    for _ in range(ROUNDS):
        for size in SIZES:
            await fill(server, workload)
            rates[size] = max(rates[size], await saturated(server, workload, size, seconds, access))
    return rates


def best(rates: Mapping[int, float]) -> int:
    """The number of connections with the highest rate."""
    return max(rates, key=lambda size: rates[size])


async def saturated(
    server: PostgresServer, workload: Workload, size: int, seconds: float, access: Access = ACCESS_DEFAULT
) -> float:
    """Transactions a second with every one of `size` connections always busy."""
    generator = workload.generator(0, 1, SEED)
    loop = asyncio.get_running_loop()
    ended: asyncio.Future[None] = loop.create_future()
    answered = 0
    async with PostgresClient(server.connection(), size, access=access) as client:
        until_s = loop.time() + seconds

        def send() -> None:
            planned = generator.next()
            client.submit(planned.operator, planned.key, planned.function, *planned.arguments).add_done_callback(next_)

        def next_(future: asyncio.Future[Reply]) -> None:
            nonlocal answered
            if ended.done():
                future.exception()
            elif error := future.exception():
                ended.set_exception(error)
            elif loop.time() >= until_s:
                ended.set_result(None)
            else:
                answered += 1
                send()

        for _ in range(size):
            send()
        await ended
    return answered / seconds
