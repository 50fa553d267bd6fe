"""One transaction run again on one slot: what it may change without asking, and what is a deviation.

Each case is executed on one state and run again on another, as if lower transactions had come between.
"""

from __future__ import annotations

import pytest

from styx.model.limits import Limits
from styx.values.codec import encode_strict
from styx.worker.footprint import Writes
from styx.worker.invocation import Running
from styx.worker.rerun import Rerun
from tests.worker.execution import OPERATOR, Execution


def rerun(
    script: str, before: dict[str, int], after: dict[str, int], slot: int = 0, limits: Limits | None = None
) -> tuple[str | None, Rerun]:
    """Executes `script` on entity a0 (slot 0 of 3) in state `before`, then re-runs its part on `slot` behind `after`.

    Gives the exception's type, `deviation`, or None, and the re-run.
    """
    execution = Execution(3, before, limits)
    execution.run({1: ("a0", script)})
    current: Writes = {(OPERATOR, key): encode_strict(number) for key, number in after.items()}
    again = Rerun(execution.footprint(1, slot), execution.slots[slot], current, may_grow=True, running=Running())
    failure = again.run()
    return (None if failure is None else "deviation" if failure.deviation else failure.type), again


def verdict(
    script: str, before: dict[str, int], after: dict[str, int], slot: int = 0, limits: Limits | None = None
) -> str | None:
    return rerun(script, before, after, slot, limits)[0]


def writes(again: Rerun) -> dict[str, bytes | None]:
    return {key: value for (_, key), value in again.writes.items()}


def test_it_runs_on_current_state() -> None:
    outcome, again = rerun("add 1", {"a0": 1}, {"a0": 10})
    assert (outcome, again.result, writes(again)) == (None, b"\x0b", {"a0": b"\x0b"})


def test_an_exception_ends_it() -> None:
    assert verdict("need 5", {"a0": 9}, {"a0": 1}) == "Short"


# Calls to other slots must be the cached ones ------------------------------------------------------------------


@pytest.mark.parametrize(
    ("script", "outcome"),
    [
        ("send b1 (add 1)", None),
        ("get; send b1 (add 1)", None),
        ("get; if 5 (send b1 (add 1)) (send c1 (add 1))", "deviation"),  # another key
        ("get; if 5 (send b1 (add 1)) (send b1 (add 2))", "deviation"),  # other parameters
        ("get; if 5 (send b1 (add 1)) (send b2 (add 1))", "deviation"),  # another slot
        ("get; if 5 (send b1 (add 1)) ()", "deviation"),  # a call less
        ("get; if 5 () (send b1 (add 1))", "deviation"),  # a call more
        ("get; if 5 (send b1 (add 1)) (ask b1 (add 1))", "deviation"),  # waits now
        ("get; if 5 (send b1 (add 1)) (send b0 (add 1))", "deviation"),  # now on the own slot
        ("get; if 5 (send b0 (add 1)) (send b1 (add 1))", "deviation"),  # no longer on the own slot
    ],
)
def test_a_call_to_another_slot_must_be_the_same(script: str, outcome: str | None) -> None:
    assert verdict(script, {"a0": 9}, {"a0": 1}) == outcome


# Calls within the slot are executed, whatever they are now -----------------------------------------------------


@pytest.mark.parametrize(
    ("script", "entities"),
    [
        ("get; if 5 (send b0 (put 1)) (send c0 (put 2))", {"c0": b"\x02"}),
        ("get; if 5 (send b0 (put 1)) (send b0 (put 2))", {"b0": b"\x02"}),
        ("get; if 5 (ask b0 (put 1)) (ask c0 (put 2))", {"c0": b"\x02"}),
        ("get; if 5 (ask b0 (put 1)) (send b0 (put 2))", {"b0": b"\x02"}),
        ("get; if 5 (send b0 (put 1)) ()", {}),
        ("get; if 5 () (send b0 (put 2))", {"b0": b"\x02"}),
        ("get; if 5 (send b0 (send c0 (put 1))) (send b0 (put 2))", {"b0": b"\x02"}),
    ],
)
def test_a_changed_call_within_the_slot_is_executed(script: str, entities: dict[str, bytes]) -> None:
    outcome, again = rerun(script, {"a0": 9}, {"a0": 1})
    assert (outcome, writes(again)) == (None, entities)


def test_a_dropped_call_that_had_reached_another_slot_deviates() -> None:
    assert verdict("get; if 5 (send b0 (send c1 (put 1))) ()", {"a0": 9}, {"a0": 1}) == "deviation"
    assert verdict("get; if 5 (ask b0 (ask c1 (put 1))) ()", {"a0": 9}, {"a0": 1}) == "deviation"


def test_a_changed_call_within_the_slot_cannot_reach_another_one() -> None:
    assert verdict("get; if 5 () (send b0 (send c1 (put 1)))", {"a0": 9}, {"a0": 1}) == "deviation"


def test_asynchronous_calls_run_in_call_path_order() -> None:
    _, again = rerun("send b0 (put 1; send b0 (add 10)); send b0 (add 100)", {}, {})
    assert writes(again)["b0"] == encode_strict(111)
    _, again = rerun("send b0 (add 1; send b0 (put 7)); send b0 (add 100)", {}, {})
    assert writes(again)["b0"] == encode_strict(107)


def test_a_synchronous_call_runs_at_its_place() -> None:
    _, again = rerun("add 1; ask a0 (add 10); add 100", {"a0": 1}, {"a0": 5})
    assert again.result == encode_strict(116)


def test_an_asynchronous_call_below_a_synchronous_one_waits_for_the_chain() -> None:
    _, again = rerun("ask b0 (send a0 (put 7)); put 1", {}, {})
    assert writes(again)["a0"] == b"\x07"


# Synchronous results -------------------------------------------------------------------------------------------


def test_a_remote_result_is_the_cached_one_on_the_callers_slot() -> None:
    outcome, again = rerun("ask b1 (get); put it", {"b1": 5}, {"b1": 9})
    assert (outcome, writes(again)) == (None, {"a0": b"\x05"})


def test_a_callee_that_would_return_something_else_deviates() -> None:
    assert verdict("ask b1 (get); put it", {"b1": 5}, {"b1": 9}, slot=1) == "deviation"
    assert verdict("ask b1 (get); put it", {"b1": 5}, {"b1": 5}, slot=1) is None


def test_an_asynchronous_callee_may_return_what_it_likes() -> None:
    assert verdict("send b1 (get)", {"b1": 5}, {"b1": 9}, slot=1) is None


def test_a_call_back_runs_inside_the_wait() -> None:
    outcome, again = rerun("put 5; ask b1 (ask a0 (add 1)); add 10", {}, {})
    assert (outcome, again.result) == (None, b"\x10")
    assert verdict("get; ask b1 (ask a0 (add 1)); add 10", {"a0": 1}, {"a0": 2}) == "deviation", "b1 was told 2, not 3"


def test_a_call_back_after_the_caller_returned_runs_behind_it() -> None:
    outcome, again = rerun("put 5; send b1 (send a0 (add 1)); add 10", {}, {})
    assert (outcome, again.result, writes(again)) == (None, b"\x0f", {"a0": b"\x10"})


# Exceptions in the cached run ----------------------------------------------------------------------------------


def test_one_that_fails_again_in_the_same_place_fails() -> None:
    assert verdict("send b0 (need 5); send c0 (fail other)", {"b0": 1}, {"b0": 2}) == "Short"


def test_one_that_no_longer_fails_was_never_run_to_its_end() -> None:
    # What it calls now was never sent.
    assert verdict("need 5; send b1 (add 1)", {"a0": 1}, {"a0": 9}) == "deviation"
    assert verdict("need 5", {"a0": 1}, {"a0": 9}) == "deviation"


def test_the_caller_of_a_callee_that_failed_elsewhere_cannot_go_on() -> None:
    assert verdict("ask b1 (fail no); put 1", {}, {}) == "deviation"
    assert verdict("ask b1 (fail no); put 1", {}, {}, slot=1) == "Failed"


def test_an_exception_behind_the_same_wait_as_before_counts() -> None:
    assert verdict("get; ask b1 (get); need 5", {"a0": 9}, {"a0": 1}) == "Short"


def test_an_exception_is_void_if_a_wait_before_it_is_none_any_more() -> None:
    # b1 was asked and has run, perhaps to a failure of its own, at a place that this execution does not come to.
    script = "get; if 5 (ask b1 (get)) (send b1 (get)); fail no"
    assert verdict(script, {"a0": 9}, {"a0": 1}) == "deviation"
    assert verdict(script.replace("b1", "b0"), {"a0": 9}, {"a0": 1}) == "Failed", "all of it was here"


# Growth --------------------------------------------------------------------------------------------------------


def test_growth_is_bounded() -> None:
    # Over 3 slots, a limit of 24 leaves an allowance of 4 more functions each.
    limits = Limits(invocations_max=24)
    calls = "; ".join(f"ask b0 (add {n})" for n in range(4))
    assert verdict(f"get; if 5 () ({calls})", {"a0": 9}, {"a0": 1}, limits=limits) is None
    assert verdict(f"get; if 5 () ({calls}; ask b0 (get))", {"a0": 9}, {"a0": 1}, limits=limits) == "deviation"


def test_growth_in_bytes_is_bounded_as_well() -> None:
    # As before, but a call with its arguments counts as two, and so does one with nine bytes as its result.
    limits = Limits(invocations_max=24, transaction_bytes_max=24 * 8)
    calls = "ask b0 (add 11111); ask b0 (add 22222)"
    assert verdict(f"get; if 5 () ({calls})", {"a0": 9}, {"a0": 1}, limits=limits) is None
    assert verdict(f"get; if 5 () ({calls}; ask b0 (get))", {"a0": 9}, {"a0": 1}, limits=limits) == "deviation"
    results = "ask b0 (get); ask b0 (get)"
    for number, outcome in ((2**31, None), (2**62, "deviation")):
        state = {"a0": 9, "b0": number}
        assert verdict(f"get; if 5 () ({results}; ask b0 (get))", state, {"a0": 1}, limits=limits) == outcome


def test_a_result_that_grows_within_the_slot_counts() -> None:
    limits = Limits(invocations_max=6, transaction_bytes_max=6 * 9)
    for calls, outcome in ((1, None), (2, "deviation")):
        script = "; ".join(["ask b0 (get)"] * calls)
        assert verdict(script, {"b0": 1}, {"b0": 2**62}, limits=limits) == outcome


def test_a_large_transaction_may_not_grow_at_all() -> None:
    execution = Execution(1, {"a0": 9})
    execution.run({1: ("a0", "get; if 5 () (send b0 (get))")})
    again = Rerun(
        execution.footprint(1), execution.slots[0], {(OPERATOR, "a0"): b"\x01"}, may_grow=False, running=Running()
    )
    failure = again.run()
    assert failure is not None
    assert failure.deviation


def test_an_endless_recursion_within_the_slot_ends_as_a_deviation() -> None:
    assert verdict("get; if 5 () (forever b0)", {"a0": 9}, {"a0": 1}, limits=Limits(invocations_max=60)) == "deviation"
