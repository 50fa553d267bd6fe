"""What the serial replay knows of lanes."""

from __future__ import annotations

from styx.testing.lanes import Lanes


def test_the_first_of_a_lane_is_before_the_others() -> None:
    lanes = Lanes()
    for its_id in ("1~x", "2~x", "3~y", "4"):
        lanes.given(its_id)
    assert [lanes.before(its_id) for its_id in ("1~x", "2~x", "3~y", "4")] == [None, "1~x", None, None]
    lanes.given("1~x")  # put off
    lanes.gone("1~x")
    assert lanes.before("2~x") is None
    assert lanes.misplaced is None


def test_ids_are_in_the_order_in_which_they_are_given() -> None:
    lanes = Lanes()
    for its_id in ("2~x", "1~y", "3~x"):
        lanes.given(its_id)
    assert lanes.misplaced is None
    lanes.gone("2~x")
    lanes.given("2~x")  # tried again by hand
    assert lanes.misplaced is None
    lanes.given("1~x")
    assert lanes.misplaced == ("1~x", "3~x")


def test_those_that_stand_together() -> None:
    lanes = Lanes()
    for its_id in ("1~x", "2~x", "2~y", "3~x"):
        lanes.given(its_id)
    assert lanes.together("1~x", 2) == ["1~x", "2~x"]
    assert lanes.together("2~x", 9) == ["2~x", "3~x"]
    lanes.gone("3~x")
    assert lanes.together("3~x", 2) == []
