"""Calls that run at once: their results in any order, the failure that counts, and what they may not reach."""

from __future__ import annotations

from itertools import permutations

import pytest

from styx.protocol.frames import Failure, Result
from styx.worker.calls_together import CallsTogether, may_leave_partition, runs_beside, runs_together
from styx.worker.invocation import CUT_CODE, Invocation
from tests.worker.execution import Execution

FIRST = 3
CALLER = b"\0\1"


def result(number: int, count: int, failure: str = "") -> Result:
    path = CALLER + (FIRST + number).to_bytes(2, "big")
    failed = Failure(b"", path, False, failure, "Type", str(number)) if failure else None
    return Result(1, 0, path, None if failure else b"%d" % number, count, [], False, failed)


def test_the_results_are_in_the_order_of_the_calls_and_the_counts_add_up_whatever_order_they_come_in() -> None:
    for order in permutations(range(3)):
        together = CallsTogether(FIRST, 3, 10)
        assert [together.take(result(number, 11 + number)) for number in order] == [False, False, True]
        assert [each.value for each in together.results()] == [b"0", b"1", b"2"]
        assert (together.called, together.failure()) == (10 + 1 + 2 + 3, None)


def test_the_failure_of_the_lowest_call_counts() -> None:
    for order in permutations(range(3)):
        together = CallsTogether(FIRST, 3, 4)
        for number in order:
            together.take(result(number, 4, "" if number == 0 else "aborted"))
        failure = together.failure()
        assert failure is not None
        assert (failure.message, together.cut) == ("1", False)


def test_it_knows_that_a_function_did_not_end() -> None:
    together = CallsTogether(FIRST, 2, 4)
    together.take(result(1, 4, CUT_CODE))
    together.take(result(0, 4, "aborted"))
    failure = together.failure()
    assert failure is not None
    assert (failure.code, together.cut) == ("aborted", True)


@pytest.mark.parametrize(
    ("path", "chain", "beside", "leaves"),
    [
        (b"\0\0", b"", False, False),  # the caller
        (b"\0\0\0\1", b"", True, False),  # the partition function: its own calls are checked
        (b"\0\0\0\1\0\0", b"", True, True),  # what it calls
        (b"\0\0\0\2\0\0", b"", False, False),  # another function's
        (b"\0\0\0\1\0\0", b"\0\0\0\1\0\0", False, False),  # what it called asynchronously runs later
        (b"\0\0\0\1\0\0\0\0", b"\0\0\0\1\0\0", False, False),
    ],
)
def test_what_a_partition_function_calls_may_leave_the_partition(
    path: bytes, chain: bytes, beside: bool, leaves: bool
) -> None:
    execution = Execution(1)
    execution.run({1: ("a0", "get")})
    footprint = execution.footprint(1)
    (ran,) = footprint.invocations
    assert not runs_beside(ran)
    runs_together(footprint, b"\0\0\0\1")
    invocation = Invocation("a0", footprint, ran._spec, ran._cell, path, chain, 10, chain, b"", -1, 1, 0, footprint)
    assert (runs_beside(invocation), may_leave_partition(invocation)) == (beside, leaves)
