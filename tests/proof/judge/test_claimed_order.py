"""The check of the claimed order: what it accepts, and each thing that it must not."""

from __future__ import annotations

from pathlib import Path

import pytest

from proof.judge.claimed_order import problems, shared_ids
from proof.judge.recorded import Recorded, Recorder, Step, load
from proof.judge.workload import Model
from styx.errors import ConfigurationError


def test_a_history_in_its_order_is_accepted() -> None:
    recorder = Recorder("list-append")
    recorder.begin(2, [["r", 1, None]])
    recorder.commit(2, [["r", 1, None]], (1, 1, 0))
    recorder.begin(0, [["append", 1, 5]])
    recorder.begin(1, [["r", 1, None], ["append", 2, 6]])
    # Ended first, and comes second.
    recorder.commit(1, [["r", 1, [5]], ["append", 2, 6]], (1, 1, 2))
    recorder.commit(0, [["append", 1, 5]], (1, 1, 1))
    recorder.begin(0, [["r", 2, None], ["r", 3, None]])
    recorder.commit(0, [["r", 2, [6]], ["r", 3, None]], (1, 2, 1))
    recorded = recorder.recorded()
    assert recorded.order == {1: 0, 4: 2, 5: 1, 7: 3}
    assert problems(recorded) == []


def test_an_order_against_real_time_is_found() -> None:
    recorder = Recorder("rw-register")
    recorder.begin(0, [["w", 1, 5]])
    recorder.commit(0, [["w", 1, 5]], (2, 1, 1))
    recorder.begin(1, [["w", 2, 6]])
    recorder.commit(1, [["w", 2, 6]], (1, 1, 1))
    assert problems(recorder.recorded()) == [
        "the transaction ended at 1 had ended before the one ended at 3 began, but is claimed to come after it"
    ]


@pytest.mark.parametrize("read", [None, 6, [5]])
def test_a_read_that_the_order_does_not_explain_is_found(read: object) -> None:
    recorder = Recorder("rw-register")
    recorder.begin(0, [["w", 1, 5]])
    recorder.commit(0, [["w", 1, 5]], (1, 1, 1))
    recorder.begin(0, [["r", 1, None]])
    recorder.commit(0, [["r", 1, read]], (1, 1, 2))
    assert problems(recorder.recorded()) == [
        f"the transaction ended at 3 read {read} from 1, where 5 is in the claimed order"
    ]


def test_what_failed_has_not_happened() -> None:
    recorder = Recorder("rw-register")
    recorder.begin(0, [["w", 1, 5]])
    recorder.fail(0, [["w", 1, 5]], "Refused")
    recorder.begin(0, [["r", 1, None]])
    recorder.commit(0, [["r", 1, 5]], (1, 1, 2))
    assert len(problems(recorder.recorded())) == 1


def with_an_unknown_outcome(model: Model, *steps: list[Step]) -> list[str]:
    """Problems of transactions that commit one after the other, while one goes on whose outcome stays unknown."""
    recorder = Recorder(model)
    recorder.begin(1, [])
    for tid, step in enumerate(steps):
        recorder.begin(0, step)
        recorder.commit(0, step, (1, 1, tid))
    recorder.lose(1, [], "TimeoutError")
    return problems(recorder.recorded())


@pytest.mark.parametrize(
    ("model", "write", "reads", "explained"),
    [
        ("rw-register", "w", [5, 5], True),
        ("rw-register", "w", [5, 9], True),
        ("rw-register", "w", [9, 9], True),
        ("rw-register", "w", [9, 5], False),  # taken back
        ("rw-register", "w", [5, None], False),
        ("rw-register", "w", [5, 7], False),  # of a transaction that is known, and comes later
        ("list-append", "append", [[5], [5, 9]], True),
        ("list-append", "append", [[9, 5], [9, 5, 8]], True),
        ("list-append", "append", [[5, 9], [5]], False),
        ("list-append", "append", [[5, 9], [9, 5]], False),
        ("list-append", "append", [[5], [5, 7]], False),
        ("list-append", "append", [[5], None], False),
    ],
)
def test_an_unknown_outcome_explains_only_what_it_can_have_written(
    model: Model, write: str, reads: list[object], explained: bool
) -> None:
    found = with_an_unknown_outcome(model, [[write, 1, 5]], *([["r", 1, read]] for read in reads), [[write, 1, 7]])
    assert len(found) == (0 if explained else 1)


def test_two_transactions_in_one_place_are_found() -> None:
    recorder = Recorder("rw-register")
    for process in (0, 1):
        recorder.begin(process, [["w", 1, process]])
    for process in (0, 1):
        recorder.commit(process, [["w", 1, process]], (1, 1, 1))
    assert problems(recorder.recorded()) == ["two transactions claim one place: those ended at 2 and 3"]


def commits(*steps: list[Step]) -> Recorded:
    """Transactions that commit one after the other."""
    recorder = Recorder("list-append")
    for tid, step in enumerate(steps):
        recorder.begin(0, [])
        recorder.commit(0, step, (1, 1, tid))
    return recorder.recorded()


def test_a_unique_id_that_is_given_twice_is_found_wherever_it_is_written() -> None:
    assert problems(commits([["append", 1, "A"]], [["append", 2, "B"]])) == []
    twice = commits([["append", 1, "A"]], [["append", 2, "A"]])
    assert problems(twice) == ["two transactions, ended at 1 and 3, were given 'A' for 2"]
    assert shared_ids([twice, commits([["append", 7, "B"]])]) == []
    assert shared_ids([twice, commits([["append", 7, "A"]])]) == ["A"]


def test_a_number_is_taken_once_of_each_sequence_and_none_is_left_out() -> None:
    first: list[Step] = [["r", "1/sequence", None], ["append", "1/sequence", 1]]
    second: list[Step] = [["r", "1/sequence", [1]], ["append", "1/sequence", 2]]
    other: list[Step] = [["r", "2/sequence", None], ["append", "2/sequence", 1]]
    assert problems(commits(first, other, second)) == []
    assert len(problems(commits(first, first))) == 2  # given twice, and read when it was there
    assert len(problems(commits(second))) == 1


def test_an_unknown_outcome_may_have_taken_a_number_that_others_know_of_another_sequence() -> None:
    def taken(n: int, k: int) -> list[Step]:
        return [["r", f"{n}/sequence", list(range(1, k)) or None], ["append", f"{n}/sequence", k]]

    assert with_an_unknown_outcome("list-append", taken(1, 1), taken(1, 2), taken(2, 1), taken(2, 3)) == []
    assert len(with_an_unknown_outcome("list-append", taken(1, 1), taken(1, 2), taken(1, 2))) == 2


def test_histories_are_read_as_they_were_written(tmp_path: Path) -> None:
    recorder = Recorder("list-append")
    recorder.begin(0, [["append", 1, 5], ["r", 1, None]])
    recorder.commit(0, [["append", 1, 5], ["r", 1, [5]]], (1, 1, 1))
    recorder.begin(0, [["append", 1, 6]])
    recorder.lose(0, [["append", 1, 6]], "TimeoutError: ")
    recorder.recorded().save(tmp_path / "folder")
    Recorded("rw-register").save(tmp_path / "folder")
    assert load(tmp_path / "folder") == [recorder.recorded(), Recorded("rw-register")]
    first = (tmp_path / "folder" / "list-append.history.jsonl").read_text().splitlines()[0]
    assert first.startswith('{"index":0,"type":"invoke","process":0,"time":')
    assert first.endswith(',"value":[["append",1,5],["r",1,null]],"f":"txn","error":null,"phase":null}')


def test_a_folder_without_histories_is_told(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="holds no history: record one with"):
        load(tmp_path)
