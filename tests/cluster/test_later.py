"""A real cluster whose processes are killed: what was given for later is done once, in order, not before its time."""

from __future__ import annotations

import asyncio
import secrets
from pathlib import Path

import pytest

from proof.cluster import ClusterOptions, ClusterUnderTest
from styx.testing.patience import PATIENCE_SECONDS
from tests.real_services import RealKafka

pytestmark = pytest.mark.slow
GIVERS, ROUNDS, EACH = 12, 10, 5


def test_calls_for_later_outlive_processes(kafka: RealKafka, tmp_path: Path) -> None:
    async def main() -> None:
        options = ClusterOptions(
            app="proof.cluster.later_app:app",
            name=f"later-{secrets.token_hex(4)}",
            kafka=kafka.bootstrap,
            store=f"file://{tmp_path}/store",
            directory=tmp_path,
        )
        async with ClusterUnderTest(options) as cluster:
            await cluster.start()
            async with cluster.client() as client:

                async def written(who: int) -> None:
                    async with asyncio.timeout(PATIENCE_SECONDS):
                        while len(await client.call("book", who, "lines")) < ROUNDS * EACH:  # noqa: ASYNC110
                            await asyncio.sleep(0.1)

                async def gives(who: int) -> None:
                    for number in range(ROUNDS):
                        delay_ms = 0 if who % 2 else 200 + 100 * number
                        arguments = (number * EACH, EACH, who, delay_ms)
                        await client.call("giver", who, "give", *arguments, timeout=PATIENCE_SECONDS)
                        await asyncio.sleep(0.1)

                async def kills() -> None:
                    for place in range(options.workers):
                        await asyncio.sleep(0.7)
                        await cluster.replace_worker(place)

                await asyncio.gather(*map(gives, range(GIVERS)), kills())
                for who in range(GIVERS):
                    await written(who)

                await cluster.replace_coordinator()
                for who in range(GIVERS):
                    lines = await client.call("book", who, "lines", timeout=PATIENCE_SECONDS)
                    assert [line[0] for line in lines] == [who] * ROUNDS * EACH
                    assert [line[1] for line in lines] == list(range(ROUNDS * EACH))
                    assert min(line[2] for line in lines) >= 0

    asyncio.run(main())
