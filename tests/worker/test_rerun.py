"""One transaction run again on one slot: what it does now, what it says to other slots, and where it stops.

Each case is executed on one state and run again on another, as if lower transactions had come between.
"""

from __future__ import annotations

import pytest

from styx.model.limits import Limits
from styx.protocol.frames import CallSpec, Failure, Patch
from styx.values.codec import decode_plain, encode_strict
from styx.worker.call_graph import CallGraph
from styx.worker.footprint import Writes
from styx.worker.invocation import Running
from styx.worker.rerun import Rerun
from tests.worker.execution import OPERATOR, Execution


class Part:
    """The part on `slot` of `script`, executed on entity a0 (slot 0 of 3) in state `before`."""

    def __init__(
        self,
        script: str,
        before: dict[str, int],
        slot: int = 0,
        limits: Limits | None = None,
        growth: int | None = None,
    ) -> None:
        limits = limits or Limits()
        self._execution = Execution(3, before, limits)
        self._execution.run({1: ("a0", script)})
        self._slot = self._execution.slots[slot]
        growth = limits.invocations_max // 6 if growth is None else growth
        self.graph = CallGraph(self._execution.footprint(1, slot), growth)
        self.again: Rerun | None = None
        self.patches: list[Patch] = []
        self._number = 0

    def run(self, after: dict[str, int]) -> Failure | None:
        """Runs it again behind `after`."""
        current: Writes = {(OPERATOR, key): encode_strict(number) for key, number in after.items()}
        again = self.again = Rerun(self.graph, self._slot, current, Running())
        failure = again.run()
        self.patches = self.graph.ran(self._number, again.made, again.given, again.stopped)
        self._number += 1
        return failure


def rerun(
    script: str, before: dict[str, int], after: dict[str, int], slot: int = 0, limits: Limits | None = None
) -> tuple[str | None, Rerun]:
    """Executes `script` in state `before`, then re-runs its part on `slot` behind `after`.

    Gives the exception's type, `deviation`, `waits`, or None, and the re-run.
    """
    part = Part(script, before, slot, limits)
    failure = part.run(after)
    assert part.again is not None
    if failure is not None:
        return ("deviation" if failure.deviation else failure.type), part.again
    return ("waits" if part.again.waits else None), part.again


def verdict(
    script: str, before: dict[str, int], after: dict[str, int], slot: int = 0, limits: Limits | None = None
) -> str | None:
    return rerun(script, before, after, slot, limits)[0]


def said(patch: Patch) -> str:
    """A patch in words."""
    path = "/".join(str(step) for step in patch.path[1::2])
    if patch.result is not None:
        return f"{path} = {decode_plain(patch.result)} to {patch.slot}"
    if patch.call is None:
        return f"{path} gone from {patch.slot}"
    how = "ask" if patch.call.synchronous else "send"
    return f"{path} {how} {patch.call.key} ({decode_plain(patch.call.params)[0]})"


def patches(script: str, before: dict[str, int], after: dict[str, int], slot: int = 0) -> list[str]:
    """What a re-run says to other slots."""
    part = Part(script, before, slot)
    part.run(after)
    return [said(patch) for patch in part.patches]


def writes(again: Rerun) -> dict[str, bytes | None]:
    return {key: value for (_, key), value in again.writes.items()}


def test_it_runs_on_current_state() -> None:
    outcome, again = rerun("add 1", {"a0": 1}, {"a0": 10})
    assert (outcome, again.result, writes(again)) == (None, b"\x0b", {"a0": b"\x0b"})


def test_an_exception_ends_it() -> None:
    assert verdict("need 5", {"a0": 9}, {"a0": 1}) == "Short"


# Calls to other slots ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        ("send b1 (add 1)", []),
        ("get; send b1 (add 1)", []),
        ("get; if 5 (send b1 (add 1)) (send c1 (add 1))", ["0 send c1 (add 1)"]),
        ("get; if 5 (send b1 (add 1)) (send b1 (add 2))", ["0 send b1 (add 2)"]),
        ("get; if 5 (send b1 (add 1)) (send b2 (add 1))", ["0 gone from 1", "0 send b2 (add 1)"]),
        ("get; if 5 (send b1 (add 1)) ()", ["0 gone from 1"]),
        ("get; if 5 () (send b1 (add 1))", ["0 send b1 (add 1)"]),
        ("get; if 5 (send b1 (add 1)) (ask b1 (add 1))", ["0 ask b1 (add 1)"]),
        ("get; if 5 (send b1 (add 1)) (send b0 (add 1))", ["0 gone from 1"]),
        ("get; if 5 (send b0 (add 1)) (send b1 (add 1))", ["0 send b1 (add 1)"]),
    ],
)
def test_a_call_to_another_slot_that_has_changed_is_told_there(script: str, expected: list[str]) -> None:
    assert patches(script, {"a0": 9}, {"a0": 1}) == expected


def test_it_is_told_once() -> None:
    part = Part("get; if 5 (send b1 (add 1)) (send c1 (add 1))", {"a0": 9})
    part.run({"a0": 1})
    assert len(part.patches) == 1
    part.run({"a0": 1})
    assert part.patches == []
    part.run({"a0": 9})
    assert [said(patch) for patch in part.patches] == ["0 send b1 (add 1)"]


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


def test_what_a_dropped_call_had_sent_to_another_slot_is_withdrawn() -> None:
    assert patches("get; if 5 (send b0 (send c1 (put 1))) ()", {"a0": 9}, {"a0": 1}) == ["0/0 gone from 1"]
    assert patches("get; if 5 (ask b0 (send c1 (put 1))) ()", {"a0": 9}, {"a0": 1}) == ["0/0 gone from 1"]


def test_a_changed_call_within_the_slot_can_reach_another_one() -> None:
    assert patches("get; if 5 () (send b0 (send c1 (put 1)))", {"a0": 9}, {"a0": 1}) == ["0/0 send c1 (put 1)"]


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


def test_a_callee_that_returns_something_else_tells_its_callers_slot() -> None:
    assert patches("ask b1 (get); put it", {"b1": 5}, {"b1": 9}, slot=1) == ["0 = 9 to 0"]
    assert patches("ask b1 (get); put it", {"b1": 5}, {"b1": 5}, slot=1) == []


def test_an_asynchronous_callee_may_return_what_it_likes() -> None:
    assert patches("send b1 (get)", {"b1": 5}, {"b1": 9}, slot=1) == []


def test_a_call_back_runs_inside_the_wait() -> None:
    outcome, again = rerun("put 5; ask b1 (ask a0 (add 1)); add 10", {}, {})
    assert (outcome, again.result) == (None, b"\x10")
    assert patches("get; ask b1 (ask a0 (add 1)); add 10", {"a0": 1}, {"a0": 2}) == ["0/0 = 3 to 1"]


def test_a_changed_synchronous_call_goes_on_with_the_last_result_until_it_has_its_own() -> None:
    part = Part("get; if 5 (ask b1 (get)) (ask c1 (get)); put it; send d1 (put 2)", {"a0": 9, "b1": 7})
    assert part.run({"a0": 1}) is None
    assert part.again is not None
    assert (part.again.waits, writes(part.again)) == (False, {"a0": b"\x07"})
    assert [said(patch) for patch in part.patches] == ["0 ask c1 (get)"], "so this round is not the last"
    part.graph.apply(Patch(5, 1, 0, 1, b"\0\0", result=encode_strict(3)))
    part.run({"a0": 1})
    assert (part.again.waits, writes(part.again), part.patches) == (False, {"a0": b"\x03"}, [])


def test_a_synchronous_call_of_another_function_waits_for_its_result() -> None:
    part = Part("get; if 5 (ask b1 (get)) (look c1 (get)); put it; send d1 (put 2)", {"a0": 9, "b1": 7})
    assert part.run({"a0": 1}) is None
    assert part.again is not None
    assert (part.again.waits, writes(part.again)) == (True, {})
    assert [said(patch) for patch in part.patches] == ["0 ask c1 (get)"], "what comes behind the wait stays as it was"
    part.graph.apply(Patch(5, 1, 0, 1, b"\0\0", result=encode_strict(3)))
    part.run({"a0": 1})
    assert (part.again.waits, writes(part.again), part.patches) == (False, {"a0": b"\x03"}, [])


def test_a_guess_ends_with_the_synchronous_call() -> None:
    part = Part("get; if 5 (ask b1 (get)) (if 1 (ask b1 (add 1)) (send b1 (add 2)))", {"a0": 9})
    part.run({"a0": 1})
    assert not part.graph.settled
    part.run({"a0": 0})
    assert [said(patch) for patch in part.patches] == ["0 send b1 (add 2)"]
    assert part.graph.settled, "nobody gives an asynchronous call's result"


def test_a_result_of_the_round_in_which_the_call_changed_is_of_the_call_before() -> None:
    part = Part("get; if 5 (ask b1 (get)) (look c1 (get)); put it", {"a0": 9, "b1": 7})
    part.run({"a0": 1})
    part.graph.apply(Patch(0, 1, 0, 1, b"\0\0", result=encode_strict(7)))
    part.run({"a0": 1})
    assert part.again is not None
    assert part.again.waits


def test_what_comes_before_the_wait_is_withdrawn_if_it_is_gone() -> None:
    script = "get; if 5 (send b0 (send d1 (get)); ask b1 (get)) (send b0 (get); look c1 (get)); send d1 (get)"
    part = Part(script, {"a0": 9})
    part.run({"a0": 1})
    assert [said(patch) for patch in part.patches] == ["1 ask c1 (get)"], "its chain has not ended"
    part = Part(script.replace("send b0", "ask b0"), {"a0": 9})
    part.run({"a0": 1})
    assert [said(patch) for patch in part.patches] == ["0/0 gone from 1", "1 ask c1 (get)"]


@pytest.mark.parametrize(
    ("first", "behind", "said_last"),
    [
        ("ask b0 (send b1 (put 7))", "send b0 (send b1 (put 7))", ["1 ask c1 (get)"]),
        ("send b0 (send b1 (put 7))", "ask b0 (send b1 (put 7))", ["1 ask c1 (get)"]),
        (
            "send b0 (send b1 (put 7))",
            "if 4 (ask b0 (send b1 (put 7))) (send b0 (get))",
            ["0/0 gone from 1", "1 ask c1 (get)"],
        ),
    ],
)
def test_a_call_that_stays_the_same_has_the_place_of_its_last_caller(
    first: str, behind: str, said_last: list[str]
) -> None:
    """The call of b1 is made before the root's wait or behind it, as its caller was asked or sent the last time."""
    part = Part(f"get; if 5 ({first}) ({behind}); get; if 4 () (look c1 (get))", {"a0": 9})
    part.run({"a0": 4})
    assert part.patches == []
    part.run({"a0": 3})
    assert [said(patch) for patch in part.patches] == said_last


def test_of_two_slots_that_make_one_call_the_first_in_serial_order_counts_until_one_withdraws() -> None:
    part = Part("send b1 (put 1)", {}, slot=1)
    first = Patch(0, 1, 1, 2, b"\0\0", call=CallSpec(True, 1, OPERATOR, "run", "c1", encode_strict(["put 2"])))
    part.graph.apply(first)
    assert not part.graph.settled
    part.run({})
    assert part.again is not None
    assert writes(part.again) == {"c1": b"\x02"}, "its chain is the root's"
    part.graph.apply(Patch(1, 1, 1, 0, b"\0\0", cached=True))
    assert part.graph.settled
    part.graph.apply(Patch(1, 1, 1, 2, b"\0\0"))
    part.run({})
    assert writes(part.again) == {}


def test_a_call_that_has_moved_here_may_run_beside_its_former_self() -> None:
    below = "ask a0 (send a0 (add 1))"
    part = Part(f"get; if 1 (send a0 ({below})) (ask b1 ({below}))", {})
    assert part.run({"a0": 1}) is None
    assert [said(patch) for patch in part.patches] == ["0 gone from 1"]


def test_a_call_whose_caller_has_moved_here_runs_once() -> None:
    """The slot that made it before has not withdrawn it yet."""
    part = Part("get; if 1 (ask a0 (ask a0 (add 1))) (ask b1 (ask a0 (add 1)))", {})
    assert part.run({"a0": 1}) is None
    assert part.again is not None
    assert (writes(part.again), part.again.moved) == ({"a0": b"\x02"}, True)
    part.graph.apply(Patch(0, 1, 0, 1, b"\0\0\0\0", cached=True))
    part.run({"a0": 1})
    assert (writes(part.again), part.again.moved) == ({"a0": b"\x02"}, False)


def test_patches_of_one_round_may_come_in_any_order() -> None:
    moved = Patch(0, 1, 1, 2, b"\0\0", call=CallSpec(False, 1, OPERATOR, "run", "c1", b"\x91\xa5put 2"), chain=b"\0\0")
    gone = Patch(0, 1, 1, 0, b"\0\0", cached=True)
    for order in ([moved, gone], [gone, moved]):
        part = Part("send b1 (put 1)", {}, slot=1)
        for patch in order:
            part.graph.apply(patch)
        part.run({})
        assert part.again is not None
        assert writes(part.again) == {"c1": b"\x02"}


def test_a_call_back_after_the_caller_returned_runs_behind_it() -> None:
    outcome, again = rerun("put 5; send b1 (send a0 (add 1)); add 10", {}, {})
    assert (outcome, again.result, writes(again)) == (None, b"\x0f", {"a0": b"\x10"})


# Failures ------------------------------------------------------------------------------------------------------


def test_an_exception_says_nothing_of_what_comes_behind_it() -> None:
    assert patches("get; if 5 () (fail no); send b1 (get); ask c1 (get)", {"a0": 9}, {"a0": 1}) == []


def test_a_call_that_came_before_an_exception_and_comes_behind_it_now_is_withdrawn() -> None:
    script = "get; if 1 (send b1 (put 5); fail now) (ask b1 (put 5))"
    assert patches(script, {}, {"a0": 1}) == ["0 gone from 1"]


def test_what_comes_before_an_exception_is_told() -> None:
    script = "get; if 5 (ask b1 (get)) (ask b0 (get)); if 5 () (fail no); send c1 (get)"
    assert patches(script, {"a0": 9, "b1": 9}, {"a0": 1}) == ["0 gone from 1"]


def test_an_exception_behind_the_same_wait_as_before_counts() -> None:
    assert verdict("get; ask b1 (get); need 5", {"a0": 9}, {"a0": 1}) == "Short"


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
    part = Part("get; if 5 () (send b0 (get))", {"a0": 9}, growth=0)
    failure = part.run({"a0": 1})
    assert failure is not None
    assert failure.deviation


def test_a_part_that_a_patch_brings_may_grow_as_any_other() -> None:
    # Over 3 slots, a limit of 24 leaves an allowance of 4 functions, in whichever round they are called.
    limits = Limits(invocations_max=24)
    calls = "; ".join(f"ask b1 (add {n})" for n in range(4))
    for script, expected in ((calls, None), (f"{calls}; ask b1 (get)", True)):
        part = Part("send b1 (get)", {}, slot=1, limits=limits)
        part.graph.apply(
            Patch(
                3,
                1,
                1,
                0,
                b"\0\0",
                CallSpec(False, 1, OPERATOR, "run", "b1", encode_strict([script])),
                None,
                True,
                b"\0\0",
            )
        )
        failure = part.run({})
        assert (failure and failure.deviation) == expected


def test_an_endless_recursion_within_the_slot_ends_as_a_deviation() -> None:
    assert verdict("get; if 5 () (forever b0)", {"a0": 9}, {"a0": 1}, limits=Limits(invocations_max=60)) == "deviation"
