"""Random programs on a durable engine that crashes again and again, external calls and poison among them."""

from __future__ import annotations

import asyncio
import random
from pathlib import Path

import pytest

from proof.chaos_app import app
from proof.random_requests import CONTENDED, MIXED, random_request
from styx.errors import InTransactionError, OutcomeUnknown, RequestRejected
from styx.messages import Reply
from styx.model.limits import Limits
from styx.testing.fixture import EmbeddedCluster, embedded_cluster
from tests.placed import placed

pytestmark = pytest.mark.anyio

ROUNDS = 4
REQUESTS = 80
LIMITS = Limits(invocations_max=300, operations_max=2_000, call_depth_max=64, value_bytes_max=20_000)


def _submit(cluster: EmbeddedCluster, rng: random.Random) -> asyncio.Future[Reply] | None:
    request = random_request(rng, rng.choice((CONTENDED, MIXED)), "")
    try:
        return cluster.engine.submit(placed(cluster.engine, request), 30)
    except (InTransactionError, RequestRejected):
        return None


@pytest.mark.parametrize("seed", range(4))
async def test_random_requests_survive_crashes(tmp_path: Path, seed: int) -> None:
    rng = random.Random(seed)
    slots = rng.choice((1, 4, 7))
    async with embedded_cluster(app, tmp_path, n_slots=slots, limits=LIMITS, snapshot_interval=0.01) as cluster:
        for _ in range(ROUNDS):
            submitted = [_submit(cluster, rng) for _ in range(REQUESTS)]
            waiting = [future for future in submitted if future is not None]
            for _ in range(rng.randrange(60)):
                await asyncio.sleep(0)
            if rng.random() < 0.8:
                await asyncio.gather(*waiting[: rng.randrange(len(waiting))])
            await cluster.crash_and_recover()
            outcomes = await asyncio.gather(*waiting, return_exceptions=True)
            assert all(isinstance(outcome, Reply | OutcomeUnknown) for outcome in outcomes)
    assert cluster.report is not None
    assert cluster.report.transactions > REQUESTS
    assert cluster.report.unanswered == 0
