"""The entries of one lane in their order."""

from __future__ import annotations

from styx.state.lane_entries import LaneEntries


def test_they_are_in_the_order_of_their_ids() -> None:
    entries = LaneEntries([("3", "t", 3), ("1", "t", 1)])
    assert entries.first == ("1", "t", 1)
    assert not entries.add(("2", "t", 2))
    assert not entries.add(("4", "t", 4))
    assert [entry[0] for entry in entries.behind_first()] == ["2", "3", "4"]
    entries.drop_first()
    assert entries.first == ("2", "t", 2)


def test_one_is_there_once() -> None:
    entries = LaneEntries([("1", "t", 1), ("2", "t", 2)])
    assert entries.add(("1", "t", 1)), "it is the first"
    assert not entries.add(("2", "t", 2))
    assert [entry[0] for entry in entries.behind_first()] == ["2"]


def test_whether_one_is_the_first() -> None:
    entries = LaneEntries(())
    assert entries.first is None
    assert entries.add(("2", "t", 2))
    assert entries.add(("1", "t", 1))
    assert not entries.add(("3", "t", 3))
