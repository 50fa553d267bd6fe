"""Checks the serial order that an engine claims: it must respect real time, and explain every read.

This is a check of its own, beside adya's, which searches for any order. It looks at nothing but the history.
"""

from __future__ import annotations

from typing import Any, Final

from styx.testing.judge.recorded import Op, Recorded

PROBLEMS_MAX: Final = 10
"""Problems of each kind that are reported."""


def problems(recorded: Recorded) -> list[str]:
    """What is wrong with the claimed order; empty if nothing is.

    Reads are replayed only if the outcome of every transaction is known.
    """
    found = _shared_places(recorded)[:PROBLEMS_MAX] + _against_real_time(recorded)[:PROBLEMS_MAX]
    if not recorded.count("info"):
        found += _unexplained_reads(recorded)[:PROBLEMS_MAX]
    return found


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
    for op in sorted(committed, key=lambda op: recorded.order[op.index]):
        for kind, n, value in op.value:
            if kind == "w":
                state[n] = value
            elif kind == "append":
                state[n] = [*state.get(n, []), value]
            elif state.get(n) != value:
                found.append(
                    f"the transaction ended at {op.index} read {value} from {n}, where {state.get(n)} is in the "
                    "claimed order"
                )
    return found
