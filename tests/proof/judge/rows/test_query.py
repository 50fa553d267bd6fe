"""The model of a query: what matches, in which order, and how many."""

from __future__ import annotations

from typing import Any

import pytest

from proof.judge.rows.query import Conditions, Row, answer, matches, told

ROWS: list[Row] = [[1, 0, 1, 5, 10, ""], [2, 0, 0, 3, 20, ""], [3, 1, 1, 3, 30, "10,20"], [4, 0, 1, 3, 40, ""]]


@pytest.mark.parametrize(
    ("conditions", "limit", "ids"),
    [
        ({}, 0, [1, 2, 3, 4]),
        ({"id": [2, 3]}, 0, [2, 3]),
        ({"kind": 1}, 0, [1, 3, 4]),
        ({"topic": 0}, 0, [2, 4, 1]),
        ({"topic": 0, "rank": [4, 9]}, 0, [1]),
        ({"rank": [3, 3]}, 0, [2, 3, 4]),
        ({"topic": 0}, 2, [2, 4]),
        ({"topic": 0}, -2, [4, 1]),
        ({"topic": 0}, 9, [2, 4, 1]),
        ({"topic": 9}, -1, []),
    ],
)
def test_a_query_gives_what_matches_in_the_order_of_its_index(
    conditions: Conditions, limit: int, ids: list[int]
) -> None:
    assert [row[0] for row in answer(reversed(ROWS), conditions, limit)] == ids


def test_a_row_that_is_not_there_matches_nothing() -> None:
    assert not matches({}, None)


@pytest.mark.parametrize(("kind", "result"), [("select", ROWS), ("keys", [1, 2, 3, 4]), ("count", 4), ("exists", True)])
def test_each_kind_of_query_tells_its_own(kind: str, result: Any) -> None:
    assert told(kind, ROWS) == result
