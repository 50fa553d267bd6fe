"""Faults strike evenly over the kinds, and each of them has something that does it."""

from __future__ import annotations

from collections import Counter
from itertools import islice
from random import Random

from benchmarks.marketplace.faults.kinds import FAULTS, drawn
from benchmarks.marketplace.faults.striking import OF_PROVIDER
from proof.cluster.scenarios import OF_PROCESSES
from proof.cluster.timed_faults import OF_SERVERS


def test_kinds_and_their_faults_take_turns() -> None:
    faults = list(islice(drawn(Random(7)), 6 * 12))
    for first in range(0, len(faults), len(FAULTS)):
        assert {each.kind for each in faults[first : first + len(FAULTS)]} == {*FAULTS}
    counts = Counter(faults)
    for kind, names in FAULTS.items():
        assert {count for each, count in counts.items() if each.kind == kind} == {12 // len(names)}, kind
    assert {each.fault for each in faults} == {name for names in FAULTS.values() for name in names}


def test_the_seed_decides_the_order() -> None:
    one, same, other = (list(islice(drawn(Random(seed)), 30)) for seed in (1, 1, 2))
    assert one == same != other


def test_some_kinds_alone() -> None:
    assert {each.kind for each in islice(drawn(Random(1), ("store", "gateway")), 9)} == {"store", "gateway"}


def test_each_fault_can_strike() -> None:
    names = [name for names in FAULTS.values() for name in names]
    known = [*OF_PROVIDER, *OF_SERVERS, *OF_PROCESSES]
    assert [known.count(name) for name in names] == [1] * len(names)
