"""A worker that is frozen while others take its slots over, and goes on afterwards, on a real cluster: what it still
appends to topics of events is not there for whoever reads committed records.
"""

from __future__ import annotations

import asyncio
import secrets
from pathlib import Path

import pytest

from proof.cluster import ClusterOptions, ClusterUnderTest
from proof.cluster.prompt_worker import MODULE
from styx import TransactionAborted
from styx.kafka.event_topics import event_topic
from styx.testing.patience import PATIENCE_SECONDS
from tests.cluster.test_events import ACCOUNTS, call, check, read_all
from tests.real_services import RealKafka

pytestmark = pytest.mark.slow
SENDERS, WORKERS = 8, 3
FROZEN_SECONDS = 3.0
"""Three times as long as a worker may be silent: then another generation runs."""


def test_what_a_frozen_worker_appends_when_it_goes_on_is_not_read(kafka: RealKafka, tmp_path: Path) -> None:
    async def main() -> None:
        options = ClusterOptions(
            app="proof.cluster.events_app:app",
            name=f"zombies-{secrets.token_hex(4)}",
            kafka=kafka.bootstrap,
            store=f"file://{tmp_path}/store",
            directory=tmp_path,
            workers=WORKERS,
            grace_s=1.0,
            worker_module=MODULE,
        )
        committed: list[str] = []
        over = asyncio.Event()
        async with ClusterUnderTest(options) as cluster:
            await cluster.start()
            async with cluster.client() as client:

                async def sends(who: int) -> None:
                    number = 0
                    while not over.is_set():
                        name, to = f"{who}-{number}", (who + 1 + number) % ACCOUNTS
                        try:
                            await call(client, who % ACCOUNTS, "transfer", to, name, idempotency_key=name)
                            committed.append(name)
                        except TransactionAborted:
                            assert number % 7 == 6
                        number += 1

                async def strikes() -> None:
                    for place in range(WORKERS):
                        await asyncio.sleep(1.0)
                        zombie = cluster.workers[place]
                        assert zombie is not None
                        before = len(committed)
                        zombie.freeze()
                        try:
                            await asyncio.sleep(FROZEN_SECONDS)
                            async with asyncio.timeout(PATIENCE_SECONDS):
                                while len(committed) < before + 50:  # noqa: ASYNC110 - others have its slots
                                    await asyncio.sleep(0.05)
                        finally:
                            zombie.thaw()
                    over.set()

                await asyncio.gather(*map(sends, range(SENDERS)), strikes())
                counts = {who: await call(client, who, "told") for who in range(ACCOUNTS)}
            await asyncio.sleep(1.0)

            topics = [event_topic(options.name, each) for each in ("account-moved", "settled")]
            moved, settled = [await read_all(kafka.bootstrap, each, options.slots, "read_committed") for each in topics]
            check(moved, settled, committed, counts)
            appended = [await read_all(kafka.bootstrap, each, options.slots, "read_uncommitted") for each in topics]
            aborted = sum(map(len, appended)) - len(moved) - len(settled)
            assert aborted > 0, "no worker was frozen amid a transaction, so nothing was shown"

    asyncio.run(main())
