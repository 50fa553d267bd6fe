"""Readers of a real cluster's events: straight from Kafka and through the gateway they get the same, in the serial
order, behind every cursor, while a worker is killed.
"""

from __future__ import annotations

import asyncio
import secrets
from pathlib import Path
from typing import Any

import pytest

import styx
from proof.cluster import ClusterOptions, ClusterUnderTest
from proof.cluster.events_app import Moved, moved
from styx.errors import BadArguments, EventsCut, RequestRejected, TransactionAborted
from styx.model.event_seen import BEGINNING, EventSeen
from styx.testing.patience import PATIENCE_SECONDS
from tests.real_services import RealKafka

pytestmark = pytest.mark.slow
SENDERS, EACH = 6, 30


async def _send(client: Any, who: int, committed: list[str]) -> None:
    for number in range(EACH):
        name = f"{who}-{number}"
        try:
            await client.call("account", who, "transfer", who + 1, name, timeout=PATIENCE_SECONDS, idempotency_key=name)
            committed.append(name)
        except TransactionAborted:
            assert number % 7 == 6


async def _is_told(url: str, name: str, client: Any, web: Any) -> None:
    """A reader whose client is closed, and who asks for what is not there."""
    async with styx.connect(url, name) as other:
        waiting = asyncio.create_task(anext(other.events("settled", after="end")))
        await asyncio.sleep(1.0)
    with pytest.raises(EventsCut, match="the client was closed"):
        await asyncio.wait_for(waiting, PATIENCE_SECONDS)
    with pytest.raises(BadArguments, match="has no event 'nix'"):
        await client.events("nix", follow=False)
    with pytest.raises(RequestRejected, match="has no event 'nix'"):
        await web.events("nix", follow=False)


async def _begins_late(client: Any, web: Any) -> None:
    late = web.events("account-moved", after="end")
    step = asyncio.create_task(anext(late))
    await asyncio.sleep(2.0)
    await client.call("account", 0, "transfer", 1, "late-1", timeout=PATIENCE_SECONDS)
    assert (await asyncio.wait_for(step, PATIENCE_SECONDS)).value["name"] == "late-1"
    await late.aclose()


def test_readers_get_the_same_behind_every_cursor(kafka: RealKafka, tmp_path: Path) -> None:
    async def main() -> None:
        options = ClusterOptions(
            app="proof.cluster.events_app:app",
            name=f"reading-{secrets.token_hex(4)}",
            kafka=kafka.bootstrap,
            store=f"file://{tmp_path}/store",
            directory=tmp_path,
        )
        committed: list[str] = []
        followed: list[EventSeen] = []
        async with ClusterUnderTest(options) as cluster:
            await cluster.start()
            url = f"kafka://{kafka.bootstrap}"
            async with styx.connect(url, options.name) as client, styx.connect(cluster.http_url) as web:

                async def follows() -> None:
                    async for event in client.events(moved):
                        followed.append(event)

                following = asyncio.create_task(follows())
                begun = client.events("account-moved", after="end")
                first = asyncio.create_task(anext(begun))
                await asyncio.sleep(2.0)
                sending = [asyncio.create_task(_send(client, who, committed)) for who in range(SENDERS)]
                await asyncio.sleep(0.5)
                await cluster.replace_worker(0)
                await asyncio.gather(*sending)
                await asyncio.sleep(1.0)

                found = await client.events(moved, follow=False)
                assert sorted(each.value.name for each in found) == sorted([*committed, *committed])
                assert all(type(each.value) is Moved for each in found)
                cursors = [each.cursor for each in found]
                assert cursors == sorted(set(cursors))
                for at in (0, 1, len(found) // 2, len(found) - 2):
                    assert await client.events(moved, after=cursors[at], follow=False) == found[at + 1 :]
                    assert await web.events(moved, after=cursors[at], follow=False) == found[at + 1 :]
                assert await client.events(moved, after=BEGINNING, follow=False) == found
                assert await web.events(moved, follow=False) == found
                assert (await asyncio.wait_for(first, PATIENCE_SECONDS)).cursor == cursors[0]
                await begun.aclose()
                async with asyncio.timeout(PATIENCE_SECONDS):
                    while len(followed) < len(found):  # noqa: ASYNC110 - another task reads
                        await asyncio.sleep(0.05)
                following.cancel()
                assert followed == found

                assert {each.value for each in await client.events("settled", follow=False)} == set(committed)
                await _begins_late(client, web)
                await _is_told(url, options.name, client, web)

    asyncio.run(main())
