"""Parts of workers become whole epochs: each once, in order, and not before the last part is there."""

from __future__ import annotations

from random import Random

import pytest

from styx.cluster.gateway.epoch_merge import EpochMerge
from styx.model.changes import FROM_NOW, EpochChanges, Given, TableChanges


def part(epoch: int, worker: int) -> EpochChanges:
    return EpochChanges(epoch, 1, [TableChanges(worker, "t", [f"{epoch}"], [b"x"])])


def test_an_epoch_is_given_when_the_last_part_is_there() -> None:
    merge = EpochMerge([1, 2], 4)
    merge.put(1, 4, [])
    assert merge.take() is None
    merge.put(2, 4, [])
    assert merge.take() == Given(4, [])
    merge.put(1, 6, [part(5, 1), part(6, 1)])
    assert merge.take() is None
    merge.put(2, 5, [])
    assert merge.take() == Given(5, [part(5, 1)])
    assert merge.taken() == {}, "a message that is taken in part"
    merge.put(2, 7, [part(6, 2), part(7, 2)])
    given = merge.take()
    assert given is not None
    assert given.through == 6
    assert [(epoch.epoch, [table.slot for table in epoch.tables]) for epoch in given.epochs] == [(6, [1, 2])]
    assert merge.taken() == {1: 1}
    merge.put(1, 7, [])
    assert merge.take() == Given(7, [part(7, 2)])
    assert merge.taken() == {2: 1}
    assert merge.take() is None


def test_from_now_begins_where_the_last_worker_does() -> None:
    merge = EpochMerge([1, 2], FROM_NOW)
    merge.put(1, 3, [])
    merge.put(1, 5, [part(4, 1), part(5, 1)])
    assert not merge.has_begun(2)
    merge.put(2, 4, [])
    assert merge.take() == Given(5, []), "of epoch 4 the second part is lacking"
    assert merge.take() is None
    merge.put(2, 6, [part(5, 2), part(6, 2)])
    assert merge.take() is None
    merge.put(1, 6, [])
    assert merge.take() == Given(6, [part(6, 2)])
    assert merge.taken() == {1: 1, 2: 1}


def test_an_epoch_closed_when_its_last_worker_closed_it() -> None:
    merge = EpochMerge([1, 2, 3], 4)
    for worker in (1, 2, 3):
        merge.put(worker, 4, [])
    merge.take()
    merge.put(1, 6, [part(5, 1)], 900)  # a later epoch: it has closed that one before
    merge.put(2, 5, [], 300)
    merge.put(3, 5, [], 200)
    assert merge.take() == Given(5, [part(5, 1)], 300)


@pytest.mark.parametrize("seed", range(20))
def test_any_order_of_messages_gives_the_same_epochs(seed: int) -> None:
    rng = Random(seed)
    workers, last = [1, 2, 3], 30
    written = {worker: [epoch for epoch in range(last + 1) if rng.random() < 0.5] for worker in workers}
    merge = EpochMerge(workers, -1)
    at = dict.fromkeys(workers, -1)
    sent = dict.fromkeys(workers, 0)
    taken = dict.fromkeys(workers, 0)
    for worker in workers:
        merge.put(worker, -1, [])
    found: list[EpochChanges] = []
    through = -1
    while through < last:
        worker = rng.choice(workers)
        to = min(last, at[worker] + rng.randrange(5))
        if to > at[worker]:
            epochs = [part(epoch, worker) for epoch in written[worker] if at[worker] < epoch <= to]
            merge.put(worker, to, epochs)
            sent[worker] += bool(epochs)
            at[worker] = to
        while (given := merge.take()) is not None:
            assert through <= given.through == min(at.values())
            assert all(through < epoch.epoch <= given.through for epoch in given.epochs)
            through = given.through
            found += given.epochs
        for each, n in merge.taken().items():
            taken[each] += n
    assert taken == sent
    for worker in workers:
        assert [epoch.epoch for epoch in found if worker in [t.slot for t in epoch.tables]] == written[worker]
    numbers = [epoch.epoch for epoch in found]
    assert numbers == sorted(set(numbers))
