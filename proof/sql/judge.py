"""The judgement of answers in SQL: each must be what plain Python makes of the state at the end of the epoch that it
names, which a serial replay of the log has recomputed.

An epoch that two generations have recorded happened twice, and only the second time counts. A snapshot of the first
time was there for a while, so an answer that is other than the replay's is not judged there: it is counted.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

from proof.sql.selects import Row, Rows, Select, TooManyRows, plain

SHOWN_MAX: Final = 5


class WrongAnswer(AssertionError):
    """An answer is not that of its epoch."""


class Answer(NamedTuple):
    """A query, the epoch that its answer names, and the answer's rows."""

    select: Select
    epoch: int
    rows: Counter[Row]


class Judged(NamedTuple):
    """Of so many `answers` as were equal: those over `three` operators, with `windows`, with `groups`, with rows at
    all, and their epochs. `uncounted` were of an epoch that happened twice, `large` would take too long to recompute.
    """

    answers: int
    three: int
    windows: int
    groups: int
    filled: int
    epochs: int
    uncounted: int
    large: int


def judge(answers: Iterable[Answer], states: Mapping[int, Rows], twice: frozenset[int] = frozenset()) -> Judged:
    """Compares all answers; `states` has the rows of each epoch, `twice` the epochs that were recorded twice. Raises
    `WrongAnswer` with the first ones that differ.
    """
    equal: list[Answer] = []
    wrong: list[str] = []
    uncounted = large = 0
    for answer in answers:
        try:
            wanted = Counter({plain(row): number for row, number in answer.select.of(states[answer.epoch]).items()})
        except TooManyRows:
            large += 1
            continue
        if wanted == answer.rows:
            equal.append(answer)
        elif answer.epoch in twice:
            uncounted += 1
        else:
            wrong.append(_difference(answer, wanted))
    if wrong:
        raise WrongAnswer(f"{len(wrong)} answers are wrong:\n" + "\n".join(wrong[:SHOWN_MAX]))
    return Judged(
        answers=len(equal),
        three=sum(len({name.partition(".")[0] for name in each.select.tables}) == 3 for each in equal),
        windows=sum(" over (" in each.select.sql for each in equal),
        groups=sum(" group by " in each.select.sql for each in equal),
        filled=sum(bool(each.rows) for each in equal),
        epochs=len({each.epoch for each in equal}),
        uncounted=uncounted,
        large=large,
    )


def _difference(answer: Answer, wanted: Counter[Row]) -> str:
    missing, surplus = list((wanted - answer.rows).items()), list((answer.rows - wanted).items())
    return (
        f"epoch {answer.epoch}: {answer.select.sql}\n  missing {missing[:SHOWN_MAX]}\n  surplus {surplus[:SHOWN_MAX]}"
    )
