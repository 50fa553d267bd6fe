"""The reference: one transaction after the other, each in its serial order, on a plain dictionary."""

from __future__ import annotations

from typing import NamedTuple

from proof.models.programs import Call
from proof.models.runner import LIMIT, Failed, Path, Place, Runner, State


class End(NamedTuple):
    """How a transaction ended: with its root's result, or with an exception's message."""

    result: int | None
    message: str | None


class SerialRun(Runner):
    """One transaction in its serial order, on `state` and its own `writes`.

    The order: a chain (an asynchronous call with all that it calls synchronously), then the asynchronous calls that the
    chain has made, by path, each with everything below it before the next. `calls` and `results` are by path,
    `touched` are the entities.
    """

    def __init__(self, state: State, n_keys: int, calls_max: int) -> None:
        super().__init__(n_keys)
        self._state = state
        self._calls_max = calls_max
        self._made: list[tuple[Path, Call]] = []
        self.writes: State = {}
        self.touched: set[int] = set()
        self.calls: dict[Path, tuple[Path, Call]] = {}
        self.results: dict[Path, int] = {}

    def transaction(self, root: Call) -> int:
        """Runs the transaction to its end, and returns the root's result. Raises `Failed`."""
        due: list[tuple[Path, Call]] = [((), root)]
        self.calls[()] = ((), root)
        while due:
            path, call = due.pop()
            self._made = []
            self.results[path] = self.invoke(path, path, call)
            due.extend(sorted(self._made, reverse=True))
        return self.results[()]

    def read(self, chain: Path, key: int) -> int:
        """As in `Runner`."""
        self.touched.add(key)
        return self.writes.get(key, self._state.get(key, 0))

    def write(self, chain: Path, key: int, value: int) -> None:
        """As in `Runner`."""
        self.touched.add(key)
        self.writes[key] = value

    def called(self, chain: Path, path: Path, index: int, call: Call) -> int:
        """As in `Runner`."""
        if len(self.calls) >= self._calls_max:
            raise Failed(Place(chain, (*path, index)), LIMIT)
        child = (*path, index)
        self.calls[child] = (chain if call.synchronous else child, call)
        if not call.synchronous:
            self._made.append((child, call))
            return 0
        self.results[child] = self.invoke(chain, child, call)
        return self.results[child]


def run_serially(state: State, root: Call, n_keys: int, calls_max: int) -> End:
    """Runs one transaction and applies its writes, unless it raises."""
    run = SerialRun(state, n_keys, calls_max)
    try:
        result = run.transaction(root)
    except Failed as failed:
        return End(None, failed.message)
    state.update(run.writes)
    return End(result, None)
