"""A run on the engine with everything under way at once, some of its answers lost: the audit finds nothing."""

from __future__ import annotations

import asyncio

import msgspec
import pytest

import styx
from benchmarks.driver.loading import load
from benchmarks.driver.workload import Audit
from benchmarks.tpcc.settings import Settings
from benchmarks.tpcc.workload import TpcC

pytestmark = pytest.mark.slow

REQUESTS = 500
SETTINGS = Settings(warehouses=3, items=60, customers=30, remote_item=0.1, rollback=0.05)


async def run(unanswered: int) -> Audit:
    """Of every so many requests the first has no answer; 0 for none."""
    workload = TpcC(SETTINGS)
    async with styx.embedded(workload.app) as client:
        for loading in workload.initial():
            await load(client, loading)
        generators = [workload.generator(number, 2, seed=1) for number in range(2)]
        sent = [generators[number % 2].next() for number in range(REQUESTS)]
        replies = await asyncio.gather(*(client.submit(*planned[1:4], *planned.arguments) for planned in sent))
        for number, (planned, reply) in enumerate(zip(sent, replies, strict=True)):
            if unanswered and number % unanswered == 0:
                generators[number % 2].unknown(planned)
            else:
                generators[number % 2].answered(planned, reply)
        witnesses = [msgspec.msgpack.decode(msgspec.msgpack.encode(each.witness())) for each in generators]
        return await workload.audit(client, witnesses)


@pytest.mark.parametrize("unanswered", [0, 3])
def test_a_sound_run_passes(unanswered: int) -> None:
    audit = asyncio.run(run(unanswered))
    assert audit.violations == []
    assert any("requests without an answer" in text for text in audit.checked) == bool(unanswered)
