"""Checks the serial order that an engine claims: it must respect real time, and explain every read. No reply may
contradict itself, and no unique id or number of a sequence may be given twice.

This check is independent of adya's, which searches for any order. It uses only the history.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

from proof.judge.recorded import Op, Recorded

PROBLEMS_MAX: Final = 10
"""Problems of each kind that are reported."""


def problems(recorded: Recorded) -> list[str]:
    """The problems of the claimed order; empty if it has none."""
    return order_problems(recorded) + [
        problem for check in (_written_twice, _unexplained_reads) for problem in check(recorded)[:PROBLEMS_MAX]
    ]


def order_problems(recorded: Recorded) -> list[str]:
    """What is wrong with the places that replies claim, and with replies by themselves, whatever they hold."""
    checks = (_contradictions, _shared_places, _against_real_time)
    return [problem for check in checks for problem in check(recorded)[:PROBLEMS_MAX]]


def ids_of(recorded: Recorded) -> set[str]:
    """The unique ids that committed transactions have written."""
    return {value for _, _, value in _writes(recorded, ("ok",)) if isinstance(value, str)}


def shared_ids(histories: Sequence[Recorded]) -> list[str]:
    """The unique ids that are in more than one history of a deployment; empty if they are unique."""
    seen: set[str] = set()
    shared: set[str] = set()
    for recorded in (each for each in histories if each.model != "rows"):
        ids = ids_of(recorded)
        shared |= ids & seen
        seen |= ids
    return sorted(shared)


def _contradictions(recorded: Recorded) -> list[str]:
    return [
        f"the reply at {op.index} contradicts itself: {op.error}" for op in recorded.ops if op.type == "ok" and op.error
    ]


def _written_twice(recorded: Recorded) -> list[str]:
    found = []
    writers: dict[Any, int] = {}
    for index, n, value in _writes(recorded, ("ok",)):
        other = writers.setdefault(_identity(n, value), index)
        if other != index:
            found.append(f"two transactions, ended at {other} and {index}, were given {value!r} for {n}")
    return found


def _writes(recorded: Recorded, outcomes: Sequence[str]) -> Iterator[tuple[int, Any, Any]]:
    """Where each write ended, what it wrote to, and the value."""
    for op in recorded.ops:
        if op.type in outcomes:
            yield from ((op.index, n, value) for kind, n, value in op.value if kind != "r")


def _identity(n: Any, value: Any) -> Any:
    """Values are written once to all entities together, a number of a sequence once to that sequence."""
    return (n, value) if isinstance(n, str) else value


def _shared_places(recorded: Recorded) -> list[str]:
    found = []
    holders: dict[int, int] = {}
    for index, position in recorded.order.items():
        other = holders.setdefault(position, index)
        if other != index:
            found.append(f"two transactions claim one place: those ended at {other} and {index}")
    return found


def _against_real_time(recorded: Recorded) -> list[str]:
    found = []
    latest: Op | None = None
    latest_at_begin: dict[int, Op | None] = {}
    order = recorded.order
    for op in recorded.ops:
        if op.type == "invoke":
            latest_at_begin[op.process] = latest
        elif op.type == "ok":
            before = latest_at_begin[op.process]
            if before is not None and order[before.index] > order[op.index]:
                found.append(
                    f"the transaction ended at {before.index} had ended before the one ended at {op.index} began, "
                    "but is claimed to come after it"
                )
            if latest is None or order[latest.index] < order[op.index]:
                latest = op
    return found


def _unexplained_reads(recorded: Recorded) -> list[str]:
    found = []
    state: dict[int, Any] = {}
    committed = [op for op in recorded.ops if op.type == "ok"]
    foreign = _Foreign(recorded)
    for op in sorted(committed, key=lambda op: recorded.order[op.index]):
        for kind, n, value in op.value:
            if kind == "w":
                state[n] = value
            elif kind == "append":
                state[n] = [*(state.get(n) or []), value]
            elif state.get(n) != value and not foreign.explains(n, state.get(n), value):
                found.append(
                    f"the transaction ended at {op.index} read {value} from {n}, where {state.get(n)} is in the "
                    "claimed order"
                )
            else:
                state[n] = value
    return found


class _Foreign:
    """Values that no transaction with a known outcome has written. A transaction with an unknown outcome may have
    written them, at any place of the order and to any entity.
    """

    def __init__(self, recorded: Recorded) -> None:
        self._possible = bool(recorded.count("info"))
        self._known = {_identity(n, value) for _, n, value in _writes(recorded, ("ok", "fail"))}

    def explains(self, n: Any, expected: Any, read: Any) -> bool:
        """Whether `read` from `n` equals `expected`, apart from possible effects of transactions with unknown
        outcomes.
        """
        if not self._possible:
            return False
        if isinstance(read, list) and isinstance(expected, list | None):
            seen = set(expected or [])
            known = [value for value in read if value in seen or _identity(n, value) in self._known]
            return known == (expected or [])
        return read is not None and _identity(n, read) not in self._known
