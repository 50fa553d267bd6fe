"""A worker that is frozen while others take its slots over, and goes on afterwards, on a real cluster: it never answers
a strict read with what the others have replaced.
"""

from __future__ import annotations

import asyncio
import secrets
from pathlib import Path

import pytest

from proof.cluster import ClusterOptions, ClusterUnderTest
from styx.cluster.wire import GATEWAY, answers_hears, encode
from styx.messages import Request, encode_request
from styx.protocol.reads import PartReturned, ReadAnswered, ReadAsked
from styx.testing.patience import PATIENCE_SECONDS
from styx.transport import Connection, Hello, dial
from styx.values.codec import decode_plain, encode_strict
from tests.real_services import RealKafka

pytestmark = pytest.mark.slow
WORKERS = 2
FROZEN_SECONDS = 3.0
"""Three times as long as a worker may be silent: then another generation runs."""
READS = 200
AFTER_SECONDS = 2.0
"""What a worker that goes on answers comes within a few milliseconds."""


class Link:
    """A gateway's connection to one worker, which it never gives up: whatever the coordinator says of others."""

    def __init__(self, connection: Connection) -> None:
        self.answers: dict[int, ReadAnswered] = {}
        self._connection = connection
        self._numbers = 0
        connection.start(self._hear, lambda *_: None, ping_seconds=0.1)

    def ask(self, key: str, strict: bool) -> int:
        """Asks for a counter; gives the read's number."""
        self._numbers += 1
        request = encode_request(Request(f"r{self._numbers}", "counter", key, "value", encode_strict([])))
        self._connection.send(encode(ReadAsked(self._numbers, 0, request, fenced=strict)))
        return self._numbers

    async def value(self, key: str) -> int | None:
        """The counter as the worker has it, None if another worker has it."""
        number = self.ask(key, strict=False)
        async with asyncio.timeout(PATIENCE_SECONDS):
            while number not in self.answers:  # noqa: ASYNC110 - sockets are no event source
                await asyncio.sleep(0.01)
        return self.seen(number)

    def seen(self, number: int) -> int | None:
        """What a read has given; None if it has none, or not yet."""
        answer = self.answers.get(number)
        if answer is None or not isinstance(answer.end, PartReturned):
            return None
        return int(decode_plain(answer.end.value or b"\x00"))

    def _hear(self, _: Connection, payloads: list[bytes]) -> None:
        for payload in payloads:
            answer = answers_hears.decode(payload)
            self.answers[answer.id] = answer


async def link_to(cluster: ClusterUnderTest, place: int) -> Link:
    security = cluster.security
    hello = Hello(cluster=security.cluster, role=GATEWAY, name="stubborn", incarnation=secrets.token_hex(8))
    return Link(await dial(f"127.0.0.1:{cluster.worker_ports[place]}", security, hello, PATIENCE_SECONDS))


async def key_of(link: Link) -> str:
    """A counter that the worker has."""
    for number in range(100):
        if await link.value(f"k{number}") is not None:
            return f"k{number}"
    raise AssertionError("the worker has no slot")


def test_a_frozen_worker_never_answers_a_strict_read_with_what_others_have_replaced(
    kafka: RealKafka, tmp_path: Path
) -> None:
    async def main() -> None:
        options = ClusterOptions(
            app="proof.cluster.reads_app:app",
            name=f"read-zombies-{secrets.token_hex(4)}",
            kafka=kafka.bootstrap,
            store=f"file://{tmp_path}/store",
            directory=tmp_path / "processes",
            workers=WORKERS,
            grace_s=1.0,
        )
        stale = 0
        async with ClusterUnderTest(options) as cluster:
            await cluster.start()
            async with cluster.client() as client:
                for place in range(WORKERS):
                    await cluster.settled()
                    link = await link_to(cluster, place)
                    key = await key_of(link)
                    before = await client.call("counter", key, "add", timeout=PATIENCE_SECONDS)
                    zombie = cluster.workers[place]
                    assert zombie is not None
                    zombie.freeze()
                    try:
                        # In turns: a worker that goes on has time for a few of them before it knows.
                        both = [(link.ask(key, strict=False), link.ask(key, strict=True)) for _ in range(READS)]
                        latest, early = map(list, zip(*both, strict=True))
                        await asyncio.sleep(FROZEN_SECONDS)
                        assert not link.answers.keys() & {*latest, *early}
                        assert await client.call("counter", key, "add", timeout=PATIENCE_SECONDS) == before + 1
                    finally:
                        zombie.thaw()
                    strict = early + [link.ask(key, strict=True) for _ in range(READS)]
                    await asyncio.sleep(AFTER_SECONDS)
                    assert {link.seen(number) for number in strict} <= {None, before + 1}
                    stale += sum(link.seen(number) == before for number in latest)
                cluster.check()
        # Reads that may be old show that the worker has answered at all when it went on.
        assert stale > 0

    asyncio.run(main())
