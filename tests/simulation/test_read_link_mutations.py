"""Mutation proof of the rules of reads between the workers of a cluster: each one, broken on purpose, is caught by the
simulator. A strict read must not be older than any reply, or strict read, that was there when it was asked.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from msgspec.structs import replace

from proof.simulation import random_plan, simulate
from proof.simulation.plan import Fault
from styx.protocol.reads import PartAsked, ReadAsked
from styx.worker import reads
from styx.worker.read_exchange import ReadExchange
from styx.worker.reads import Reads, closed_epoch
from styx.worker.worker import Worker
from tests.plain_form import plain_form
from tests.simulation.mutation import Mutation, assert_caught

pytestmark = plain_form

PACE = {"outside": 0.2, "fences": 0.3}
FROZEN = {
    "outside": 0.3,
    "fences": 0.8,
    "slots": 4,
    "requests": 20,
    "workers": 3,
    "wanted": 2,
    "auto": False,
    "duration_s": 3.0,
    "faults": tuple(Fault("frozen worker", 0.3 * number, 1.2) for number in range(8)),
}
"""Workers that are taken for dead again and again, and wake up."""


def a_strict_read_waits_for_no_record(patch: pytest.MonkeyPatch) -> None:
    """As in an engine that nobody can take over."""
    original = Reads.ask

    def ask(self: Reads, wanted: Any) -> None:
        least = max(wanted.at_least, reads.answered_epoch(self._worker)) if wanted.fenced else wanted.at_least
        original(self, replace(wanted, fenced=False, at_least=least))

    patch.setattr(Reads, "ask", ask)


def a_strict_read_is_of_the_epoch_before_its_fence(patch: pytest.MonkeyPatch) -> None:
    original = reads.fence_epoch

    def fence_epoch(worker: Worker) -> int | None:
        fence = original(worker)
        return None if fence is None else fence - 1

    patch.setattr(reads, "fence_epoch", fence_epoch)


def a_part_is_asked_at_the_newest_epoch_of_whoever_runs_it(patch: pytest.MonkeyPatch) -> None:
    original = ReadExchange.heard

    def heard(self: ReadExchange, peer: int, message: Any) -> None:
        if isinstance(message, PartAsked):
            newest = max(message.part.epoch, closed_epoch(self._worker))
            message = replace(message, part=replace(message.part, epoch=newest))
        original(self, peer, message)

    patch.setattr(ReadExchange, "heard", heard)


def a_token_is_ignored(patch: pytest.MonkeyPatch) -> None:
    original = ReadExchange.asked

    def asked(self: ReadExchange, client: int, message: ReadAsked, *place: int) -> None:
        original(self, client, replace(message, at_least=-1), *place)

    patch.setattr(ReadExchange, "asked", asked)


MUTATIONS: dict[Mutation, tuple[int, Mapping[str, Any]]] = {
    a_strict_read_waits_for_no_record: (0, FROZEN),
    a_strict_read_is_of_the_epoch_before_its_fence: (0, PACE),
    a_part_is_asked_at_the_newest_epoch_of_whoever_runs_it: (4, PACE),
    a_token_is_ignored: (0, PACE),
}
"""Each with the seed that is tried first, and what its plans have."""


@pytest.mark.slow
@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda mutation: mutation.__name__)
def test_the_simulator_catches(mutation: Mutation, monkeypatch: pytest.MonkeyPatch) -> None:
    mutation(monkeypatch)
    first, pace = MUTATIONS[mutation]
    assert_caught(mutation, pace, cluster=True, first=first)


def test_nothing_is_caught_without_a_mutation() -> None:
    reports = [simulate(replace(random_plan(seed, cluster=True), **PACE)) for seed in range(3)]
    assert sum(report.outside for report in reports) > 100
    assert sum(report.strict for report in reports) > 20
