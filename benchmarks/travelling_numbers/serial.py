"""The serial execution of the app in a few lines of plain Python: what replies and state must be.

It shares nothing with the engine, and only the digest with the app.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from benchmarks.travelling_numbers.app import digest
from benchmarks.travelling_numbers.shapes import Arguments

Entities = dict[tuple[str, Any], Any]
"""States by (operator, key)."""


def run(shape: str, requests: Iterable[Arguments]) -> tuple[list[Any], Entities]:
    """The results of `requests`, one after the other, and the state behind them."""
    state: Entities = {}
    results: list[Any] = []
    for number, arguments in enumerate(requests, 1):
        results.append(_one(shape, number, arguments, state))
    return results, state


def _one(shape: str, number: int, arguments: Arguments, state: Entities) -> Any:
    def keep(operator: str, key: Any, arrived: int) -> int:
        state[operator, key] = digest(state.get((operator, key), 0), arrived)
        kept: int = state[operator, key]
        return kept

    if shape == "for_a_result":
        quoted = keep("price", arguments[0], number)
        _, total = state.get(("counter", shape), (0, 0))
        state["counter", shape] = [number, total + quoted]
        return [number, quoted]
    state["counter", shape] = number
    if shape == "as_argument":
        keep("ledger", arguments[0], number)
    elif shape == "as_key":
        state["invoice", number] = 1
    else:
        first, second = arguments
        keep("stage", second, keep("stage", first, number))
    return number
