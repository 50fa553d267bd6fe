"""The execution step of one transaction: chains that do not see each other, on the state at the epoch's beginning.

In sequential mode the chains run in their serial order, and everything before them is seen.
"""

from __future__ import annotations

from random import Random

from proof.models.programs import Call
from proof.models.runner import Failed, Path, Runner, State
from proof.models.serial import SerialRun


class Execution:
    """What the execution step of one transaction has found out.

    `calls` are all calls that were sent, by path, with their chains; `results` those of ended invocations. `touched`
    are the entities, `writes` their new values. `failure` is the first exception in serial order. `collided`: chains
    that do not see each other touched one entity, and one of them wrote. `overflow`: it has to be counted exactly.
    """

    def __init__(self) -> None:
        self.calls: dict[Path, tuple[Path, Call]] = {}
        self.results: dict[Path, int] = {}
        self.touched: set[int] = set()
        self.writes: State = {}
        self.failure: Failed | None = None
        self.collided = False
        self.overflow = False

    @property
    def leaves(self) -> bool:
        """Whether the transaction leaves the epoch, to come back in sequential mode.

        One that collided *and* raised is one of these: a chain that raised has sent none of its asynchronous calls,
        and its synchronous callees on other slots cannot know that theirs were not sent.
        """
        return self.overflow or (self.collided and self.failure is not None)


def execute(state: State, root: Call, sequential: bool, n_keys: int, calls_max: int, arrival: Random) -> Execution:
    """Runs the execution step of one transaction; `arrival` decides in which order its chains run."""
    if sequential:
        return _in_order(state, root, n_keys, calls_max)
    run = _BlindChains(state, n_keys)
    run.transaction(root, arrival)
    found = run.found
    found.overflow = run.count > calls_max
    return found


def _in_order(state: State, root: Call, n_keys: int, calls_max: int) -> Execution:
    found, run = Execution(), SerialRun(state, n_keys, calls_max)
    try:
        run.transaction(root)
    except Failed as failed:
        found.failure = failed
    found.calls, found.results, found.touched, found.writes = run.calls, run.results, run.touched, run.writes
    return found


class _BlindChains(Runner):
    def __init__(self, state: State, n_keys: int) -> None:
        super().__init__(n_keys)
        self.found = Execution()
        self.count = 1
        self._state = state
        self._readers: dict[int, set[Path]] = {}
        self._values: dict[int, dict[Path, int]] = {}
        self._made: list[tuple[Path, Call]] = []

    def transaction(self, root: Call, arrival: Random) -> None:
        found = self.found
        found.calls[()] = ((), root)
        due: list[tuple[Path, Call]] = [((), root)]
        while due:
            path, call = due.pop(arrival.randrange(len(due)))
            self._made = []
            try:
                found.results[path] = self.invoke(path, path, call)
            except Failed as failed:
                if found.failure is None or failed.place < found.failure.place:
                    found.failure = failed
                continue  # the chain's asynchronous calls are not sent; the other chains drain
            for child, made in self._made:
                found.calls[child] = (child, made)
                due.append((child, made))
        found.touched = self._readers.keys() | self._values.keys()
        found.writes = {key: values[max(values, key=len)] for key, values in self._values.items()}
        found.collided = any(
            _concurrent(chain, writer)
            for key, values in self._values.items()
            for writer in values
            for chain in self._readers.get(key, set()) | values.keys()
        )

    def read(self, chain: Path, key: int) -> int:
        self._readers.setdefault(key, set()).add(chain)
        values = self._values.get(key, {})
        for end in range(len(chain), -1, -1):
            if chain[:end] in values:
                return values[chain[:end]]
        return self._state.get(key, 0)

    def write(self, chain: Path, key: int, value: int) -> None:
        self._values.setdefault(key, {})[chain] = value

    def called(self, chain: Path, path: Path, index: int, call: Call) -> int:
        child = (*path, index)
        self.count += 1
        if not call.synchronous:
            self._made.append((child, call))
            return 0
        self.found.calls[child] = (chain, call)
        result = self.found.results[child] = self.invoke(chain, child, call)
        return result


def _concurrent(a: Path, b: Path) -> bool:
    shared = min(len(a), len(b))
    return a[:shared] != b[:shared]
