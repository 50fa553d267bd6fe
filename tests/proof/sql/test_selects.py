"""What random queries give of plain rows, by hand."""

from __future__ import annotations

from collections import Counter
from random import Random
from typing import Any

import pytest

from proof.sql import selects
from proof.sql.judge import Answer, WrongAnswer, judge
from proof.sql.selects import Column, Joined, Row, Select, TooManyRows, random_select
from styx.query.relations import Table

A = Column(0, 0, "int", "a", "t0.a")
B = Column(1, 0, "int", "b", "t1.b")
ONE, TWO = Table("s", "one", [("a", "int")]), Table("s", "two", [("b", "int")])
ROWS = {"s.one": [(1,), (2,), (None,), (2,)], "s.two": [(2,), (None,), (3,)]}


def first(found: list[Any]) -> Counter[Any]:
    return Counter(row[0] for row in found)


def test_null_equals_nothing() -> None:
    assert Select("", ["s.one", "s.two"], [(A, B)], [], first).of(ROWS) == {(2,): 2}


def test_a_product_is_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    select = Select("", ["s.one", "s.two"], [None], [], first)
    assert select.of(ROWS) == {(1,): 3, (2,): 6, (None,): 3}
    monkeypatch.setattr(selects, "ROWS_MAX", 11)
    with pytest.raises(TooManyRows):
        select.of(ROWS)


def test_ranks_and_folds_of_a_window() -> None:
    part: list[tuple[Row, Joined]] = [(((False, each),), ((each,),)) for each in (1, 2, 2, 5)]
    places = [((False, each),) for each in (1, 2, 5)]
    for ranks, wanted in (("rank", [1, 2, 4]), ("dense_rank", [1, 2, 3]), ("", [1, 5, 10])):
        found = selects._over(part, ranks, A, "sum")
        assert [found[place] for place in places] == wanted


def test_all_kinds_of_queries_come() -> None:
    rng = Random(1)
    texts = [random_select(rng, [ONE, TWO], lambda rng, table, at: rng.randrange(4)).sql for _ in range(200)]
    for part in (" group by ", " over (", "distinct ", "count(*)", "dense_rank()", " is null", ' t0."a" = t1."b"'):
        assert any(part in text for text in texts), part


def test_a_wrong_answer_is_told_but_for_an_epoch_that_happened_twice() -> None:
    select = Select("select a from s.one t0", ["s.one"], [], [], first)
    right, wrong = Counter({(1,): 1, (2,): 2, (None,): 1}), Counter({(1,): 1, (3,): 2, (None,): 1})
    assert judge([Answer(select, 7, right)], {7: ROWS}).answers == 1
    with pytest.raises(WrongAnswer, match=r"epoch 7: select a(.|\n)*missing \[\(\(2,\), 2\)\](.|\n)*\(3,\)"):
        judge([Answer(select, 7, wrong)], {7: ROWS})
    found = judge([Answer(select, 7, wrong), Answer(select, 7, right)], {7: ROWS}, frozenset({7}))
    assert (found.answers, found.uncounted) == (1, 1)
