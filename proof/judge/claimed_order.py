"""Checks the serial order that an engine claims: it must respect real time, and explain every read.

This check is independent of adya's, which searches for any order. It uses only the history.
"""

from __future__ import annotations

from typing import Any, Final

from proof.judge.recorded import Op, Recorded

PROBLEMS_MAX: Final = 10
"""Problems of each kind that are reported."""


def problems(recorded: Recorded) -> list[str]:
    """The problems of the claimed order; empty if it has none."""
    checks = (_shared_places, _against_real_time, _unexplained_reads)
    return [problem for check in checks for problem in check(recorded)[:PROBLEMS_MAX]]


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
            elif state.get(n) != value and not foreign.explains(state.get(n), value):
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
        ended = [op for op in recorded.ops if op.type in ("ok", "fail")]
        self._known = {value for op in ended for kind, _, value in op.value if kind != "r"}

    def explains(self, expected: Any, read: Any) -> bool:
        """Whether `read` equals `expected`, apart from possible effects of transactions with unknown outcomes."""
        if not self._possible:
            return False
        if isinstance(read, list) and isinstance(expected, list | None):
            seen = set(expected or [])
            return [value for value in read if value in seen or value in self._known] == (expected or [])
        return read is not None and read not in self._known
