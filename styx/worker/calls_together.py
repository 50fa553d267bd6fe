"""Calls of one function that run at once in the execution step: those of a partition function on all partitions.

In the serial order they run one after the other. A partition function calls entities of its own partition only, so none
of the calls can see what another one does, and their order does not matter. What a partition function calls may call
anything. If it makes a synchronous call, the transaction leaves the epoch and comes back in sequential mode.
"""

from __future__ import annotations

from styx.model.context import PATH_STEP_BYTES
from styx.protocol.frames import Failure, Result
from styx.worker.footprint import Footprint
from styx.worker.invocation import CUT_CODE, Invocation


class CallsTogether:
    """The `count` calls of one invocation from number `first` on, and their results as they come, in any order.

    `called` are the calls of the transaction that are known to the caller: at first without those that these calls
    make. `cut`: the watchdog has interrupted one of the called functions.
    """

    def __init__(self, first: int, count: int, called: int) -> None:
        self.called = called
        self.cut = False
        self._first = first
        self._before = called
        self._results: list[Result | None] = [None] * count
        self._missing = count

    def take(self, result: Result) -> bool:
        """Takes the result of one call. Returns whether it was the last one that was missing."""
        number = int.from_bytes(result.path[-PATH_STEP_BYTES:], "big") - self._first
        self._results[number] = result
        self._missing -= 1
        self.called += result.count - self._before
        if result.failure is not None and result.failure.code == CUT_CODE:
            self.cut = True
        return self._missing == 0

    def failure(self) -> Failure | None:
        """The failure of the lowest call that failed. In the serial order no higher one would have run."""
        for result in self.results():
            if result.failure is not None:
                return result.failure
        return None

    def results(self) -> list[Result]:
        """All results, by the call's number."""
        found = [result for result in self._results if result is not None]
        assert len(found) == len(self._results), "a function continues before its calls have ended"
        return found


def runs_together(footprint: Footprint, path: bytes) -> None:
    """Notes on the slot of a partition function, whose call is at `path`, that it runs at once with others."""
    if footprint.together is None:
        footprint.together = set()
    footprint.together.add(path)


def runs_beside(invocation: Invocation) -> bool:
    """Whether the invocation is, within its chain, one of the functions that run at once, or is called by one of them.

    That is known on the slot of that function; a call to another slot has been noted by `may_leave_partition`.
    """
    together, path = invocation._footprint.together, invocation._path
    if together is None:
        return False
    for end in range(len(invocation._chain_id) + PATH_STEP_BYTES, len(path) + 1, PATH_STEP_BYTES):
        if path[:end] in together:
            return True
    return False


def may_leave_partition(invocation: Invocation) -> bool:
    """Whether a synchronous call of the invocation may reach what another one of the functions that run at once
    reaches. The partition function's own calls may not.
    """
    together = invocation._footprint.together
    return together is not None and invocation._path not in together and runs_beside(invocation)
