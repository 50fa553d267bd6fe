"""The order of what is due."""

from __future__ import annotations

from typing import Any

from styx.model.agenda import AT_ONCE, AgendaEntry, agenda_of, encode_entry
from styx.state.due_calls import BEHIND_MAX, TOGETHER_BYTES_MAX, TOGETHER_MAX, DueCall
from styx.state.slot_state import SlotState

AGENDA = agenda_of("cart")


def entry(due_us: int, its_id: str) -> bytes:
    return encode_entry(AgendaEntry(due_us, its_id, 0, "mail", "send", "a", b"\x90", 5, 1))


def given(state: SlotState, *entries: tuple[str, int]) -> None:
    for its_id, due_us in entries:
        state.table(AGENDA).write(1, ("a", its_id), entry(due_us, its_id))


def taken(state: SlotState, now_us: int, limit: int = 10) -> list[str]:
    assert state.due_calls is not None
    return [" ".join((call.id, *call.behind)) for call in state.due_calls.take(now_us, limit)]


def test_a_slot_without_agendas_has_no_order() -> None:
    state = SlotState()
    state.table("cart")
    assert state.due_calls is None
    assert state.agenda_length() == 0


def test_timers_come_by_time_and_then_by_id() -> None:
    state = SlotState()
    given(state, ("c", 20), ("b", 10), ("d", 30), ("a", 20))
    assert state.due_calls is not None
    assert (state.due_calls.next_us, state.due_calls.has_due(9), state.due_calls.has_due(10)) == (10, False, True)
    assert taken(state, 20) == ["b", "a", "c"]
    assert taken(state, 29) == []
    assert taken(state, 30) == ["d"]


def test_the_oldest_call_is_the_one_that_has_been_due_longest() -> None:
    state = SlotState()
    given(state, ("timer", 20))
    assert state.due_calls is not None
    assert state.due_calls.oldest_us == 20
    at_once = AgendaEntry(AT_ONCE, "at once", 7, "mail", "send", "a", b"\x90", 5, 1)
    state.table(AGENDA).write(1, ("a", "at once"), encode_entry(at_once))
    assert state.due_calls.oldest_us == 7
    assert taken(state, 20) == ["at once", "timer"]
    assert state.due_calls.oldest_us is None


def test_calls_after_commit_and_timers_share_the_room() -> None:
    state = SlotState()
    given(state, *[(f"n{i}", AT_ONCE) for i in range(6)], *[(f"t{i}", 5) for i in range(6)])
    assert taken(state, 5, 4) == ["n0", "n1", "t0", "t1"]
    assert taken(state, 0, 4) == ["n2", "n3", "n4", "n5"]
    assert taken(state, 5, 4) == ["t2", "t3", "t4", "t5"]


def test_the_same_number_gives_the_same_calls() -> None:
    one, other = SlotState(), SlotState()
    for state in (one, other):
        given(state, *[(f"n{i}", AT_ONCE) for i in range(3)], *[(f"t{i}", 5) for i in range(9)])
    first = taken(one, 5, 100)
    assert taken(other, 5, len(first)) == first


def test_what_was_withdrawn_replaced_or_put_off_is_not_given() -> None:
    state = SlotState()
    given(state, ("gone", 1), ("late", 2))
    state.table(AGENDA).write(1, ("a", "gone"), None)
    state.table(AGENDA).write(1, ("a", "late"), entry(9, "other"))
    assert taken(state, 5) == []
    assert taken(state, 9) == ["other"]


def test_what_is_under_way_is_given_again_only_when_it_is_due_again() -> None:
    state = SlotState()
    given(state, ("x", 1))
    assert taken(state, 5) == ["x"]
    state.table(AGENDA).write(2, ("a", "x"), entry(7, "x"))
    assert state.due_calls is not None
    assert taken(state, 9) == []
    state.due_calls.let_go("x")
    state.table(AGENDA).write(2, ("a", "x"), entry(8, "x"))
    assert taken(state, 9) == ["x"]


def test_loading_makes_the_same_order() -> None:
    state = SlotState()
    given(state, ("c", 20), ("b", AT_ONCE), ("a", 20))
    assert taken(state, 0) == ["b"]
    state.as_stored()  # whoever loads it says which deliveries are under way
    assert state.due_calls is not None
    state.due_calls.take_up("c")
    assert taken(state, 20) == ["b", "a"]


def test_many_that_were_withdrawn_are_forgotten() -> None:
    state = SlotState()
    for number in range(5_000):
        given(state, (f"{number:06d}", 10**15))
        state.table(AGENDA).write(1, ("a", f"{number:06d}"), None)
    assert state.due_calls is not None
    assert len(state.due_calls._timers) < 2_000


def test_many_that_were_replaced_under_their_name_are_forgotten() -> None:
    state = SlotState()
    for number in range(5_000):
        state.table(AGENDA).write(1, ("a", "@expiry"), entry(10**15 + number, f"{number:06d}"))
    assert state.due_calls is not None
    assert len(state.due_calls._timers) < 2_000
    assert taken(state, 10**16) == ["004999"]


def test_what_is_put_off_while_the_order_is_made_anew_is_given_when_it_is_due_again() -> None:
    state = SlotState()
    given(state, ("x", 1), ("y", 1))
    assert taken(state, 5) == ["x", "y"]
    state.table(AGENDA).write(2, ("a", "x"), entry(7, "x"))
    state.table(agenda_of("order"))  # the first call that this operator gives
    state.table(AGENDA).write(2, ("a", "y"), entry(8, "y"))
    assert state.due_calls is not None
    state.due_calls.let_go("x")
    state.due_calls.let_go("y")
    assert state.due_calls.next_us == 7
    assert taken(state, 9) == ["x", "y"]


def test_a_call_that_stands_in_the_order_twice_is_given_once() -> None:
    state = SlotState()
    for number in range(2_000):
        given(state, (f"n{number}", 10**15))
    gone = {("a", f"n{number}"): None for number in range(2_000)}
    state.table(AGENDA).commit(2, {**gone, ("a", "x"): entry(3, "x")})
    assert taken(state, 5) == ["x"]


def test_a_call_says_where_it_stands() -> None:
    state = SlotState()
    key: Any = ("a", "x")
    given(state, ("x", 1))
    assert state.due_calls is not None
    assert state.due_calls.take(1, 1) == [DueCall("x", AGENDA, key)]


# Lanes -----------------------------------------------------------------------------------------------------


def gone(state: SlotState, *ids: str) -> None:
    """The delivery of entries has committed and ended."""
    assert state.due_calls is not None
    for its_id in ids:
        state.table(AGENDA).write(2, ("a", its_id), None)
    state.due_calls.let_go(ids[0])


def test_a_lane_gives_those_that_wait_together() -> None:
    state = SlotState()
    given(state, ("3~x", AT_ONCE), ("1~x", AT_ONCE), ("2~x", AT_ONCE), ("2~y", AT_ONCE), ("4", AT_ONCE))
    assert taken(state, 0) == ["1~x 2~x 3~x", "2~y", "4"]
    given(state, ("5~x", AT_ONCE), ("6~x", AT_ONCE))
    assert taken(state, 0) == [], "what is behind a delivery waits for it"
    gone(state, "1~x", "2~x", "3~x")
    assert taken(state, 0) == ["5~x 6~x"]
    gone(state, "2~y")
    gone(state, "5~x", "6~x")
    assert state.due_calls is not None
    assert not state.due_calls.has_due(10**18)
    assert state.due_calls.taken == {"4": None}


def test_no_more_together_than_the_limit() -> None:
    state = SlotState()
    ids = [f"{n:03}~x" for n in range(TOGETHER_MAX + 1)]
    given(state, *[(its_id, AT_ONCE) for its_id in ids])
    assert taken(state, 0) == [" ".join(ids[:TOGETHER_MAX])]
    gone(state, *ids[:TOGETHER_MAX])
    assert taken(state, 0) == [ids[-1]]


def test_no_more_bytes_together_than_the_limit() -> None:
    state = SlotState()
    params = bytes(TOGETHER_BYTES_MAX // 2 - 100)
    for its_id, data in (("1~x", b"\x90"), ("2~x", params), ("3~x", params), ("4~x", bytes(TOGETHER_BYTES_MAX))):
        large = AgendaEntry(AT_ONCE, its_id, 0, "mail", "send", "a", data, 5, 1)
        state.table(AGENDA).write(1, ("a", its_id), encode_entry(large))
    assert taken(state, 0) == ["1~x 2~x 3~x"]
    gone(state, "1~x", "2~x", "3~x")
    assert taken(state, 0) == ["4~x"], "one that is larger by itself is given alone"


def test_no_more_behind_others_in_one_epoch_than_the_limit() -> None:
    state = SlotState()
    given(state, *[(f"{n:03}~{lane}", AT_ONCE) for lane in range(9) for n in range(TOGETHER_MAX)])
    assert state.due_calls is not None
    calls = state.due_calls.take(0, 100)
    assert [len(call.behind) for call in calls] == [63, 63, 63, 61, 0, 0, 0, 0, 0]
    assert sum(len(call.behind) for call in calls) == BEHIND_MAX


def test_the_same_number_gives_the_same_calls_together() -> None:
    one, other = SlotState(), SlotState()
    for state in (one, other):
        given(state, *[(f"{n:03}~{lane}", AT_ONCE) for lane in range(9) for n in range(50)])
        given(state, *[(f"t{n}", 5) for n in range(20)])
    for limit in (100, 7):
        first = taken(one, 5, limit)
        assert taken(other, 5, len(first)) == first


def test_one_that_has_a_time_is_given_alone() -> None:
    state = SlotState()
    given(state, ("1~x", AT_ONCE), ("2~x", AT_ONCE), ("3~x", 7), ("4~x", AT_ONCE), ("5~x", AT_ONCE))
    assert taken(state, 9) == ["1~x 2~x"]
    gone(state, "1~x", "2~x")
    assert taken(state, 9) == ["3~x"]
    gone(state, "3~x")
    assert taken(state, 9) == ["4~x 5~x"]


def test_what_could_not_be_made_together_is_given_again() -> None:
    state = SlotState()
    given(state, ("1~x", AT_ONCE), ("2~x", AT_ONCE), ("3~x", AT_ONCE))
    assert taken(state, 0) == ["1~x 2~x 3~x"]
    given(state, ("2~x", 7))  # set apart by what follows the failure
    assert state.due_calls is not None
    state.due_calls.let_go("1~x")
    assert taken(state, 7) == ["1~x"]
    gone(state, "1~x")
    assert taken(state, 7) == ["2~x"]
    gone(state, "2~x")
    assert taken(state, 7) == ["3~x"]


def test_one_that_has_gone_is_left_out() -> None:
    state = SlotState()
    given(state, ("1~x", AT_ONCE), ("2~x", AT_ONCE), ("3~x", AT_ONCE))
    state.table(AGENDA).write(1, ("a", "2~x"), None)
    assert taken(state, 0) == ["1~x 3~x"]


def test_lanes_that_share_a_name_are_delivered_apart() -> None:
    state = SlotState()
    given(state, ("1~x", AT_ONCE), ("3~x", AT_ONCE))
    state.table(AGENDA).write(1, ("other", "2~x"), entry(AT_ONCE, "2~x"))
    assert taken(state, 0) == ["1~x"]
    gone(state, "1~x")
    assert taken(state, 0) == ["2~x"]


def test_what_was_put_off_keeps_its_lane_waiting() -> None:
    state = SlotState()
    given(state, ("1~x", AT_ONCE))
    assert taken(state, 0) == ["1~x"]
    given(state, ("2~x", AT_ONCE), ("1~x", 50))
    assert state.due_calls is not None
    state.due_calls.let_go("1~x")
    assert (taken(state, 49), state.due_calls.next_us) == ([], 50)
    assert taken(state, 50) == ["1~x"]
    gone(state, "1~x")
    assert taken(state, 0) == ["2~x"]


def test_an_order_that_is_made_anew_keeps_lanes() -> None:
    state = SlotState()
    given(state, ("1~x", AT_ONCE), ("2~x", AT_ONCE), ("3~y", AT_ONCE))
    state.as_stored()  # as after a start: nothing is taken
    assert state.due_calls is not None
    state.due_calls.take_up("1~x")  # but this was under way
    assert taken(state, 0) == ["3~y"]
    gone(state, "1~x")
    assert taken(state, 0) == ["2~x"]
    state.due_calls._make()
    assert taken(state, 0) == []
    gone(state, "2~x")
    assert taken(state, 0) == []


def test_what_comes_back_to_a_lane_comes_first() -> None:
    """A dead call that is tried again."""
    state = SlotState()
    given(state, ("2~x", AT_ONCE))
    given(state, ("1~x", AT_ONCE), ("3~x", AT_ONCE))
    assert taken(state, 0) == ["1~x 2~x 3~x"]


def test_a_long_lane_has_one_place() -> None:
    state = SlotState()
    given(state, *[(f"{n:04}~x", AT_ONCE) for n in range(1_000)])
    assert state.due_calls is not None
    assert state.due_calls._places == 1
