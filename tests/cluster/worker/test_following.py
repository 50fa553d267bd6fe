"""When epochs closed, as a worker tells its followers."""

from __future__ import annotations

from styx.cluster.worker.following import CLOSINGS_MAX, Closings


def test_an_epoch_closed_when_it_was_seen_or_before_the_next_one_that_was() -> None:
    closings = Closings()
    closings.closed(4, 100)
    assert closings.of(4) == 0, "it may have closed long before"
    closings.closed(4, 110)
    closings.closed(5, 120)
    closings.closed(8, 150)
    assert [closings.of(epoch) for epoch in (3, 4, 5, 6, 8, 9)] == [0, 0, 120, 150, 150, 0]


def test_another_generation_begins_anew() -> None:
    closings = Closings()
    closings.closed(4, 100)
    closings.closed(9, 120)
    closings.closed(6, 130)
    closings.closed(7, 140)
    assert [closings.of(epoch) for epoch in (6, 7, 9)] == [0, 140, 0]


def test_it_remembers_so_many() -> None:
    closings = Closings()
    for epoch in range(3 * CLOSINGS_MAX):
        closings.closed(epoch, epoch + 1)
    last = 3 * CLOSINGS_MAX - 1
    assert closings.of(last) == last + 1
    assert closings.of(last - CLOSINGS_MAX) == last - CLOSINGS_MAX + 1
    assert closings.of(1) == 0
