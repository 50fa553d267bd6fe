"""Patch rounds end, and give the history of a serial execution, on any number of workers and in any order of arrival.

`STYX_MODEL_SEEDS` is the number of random histories, 100 by default.
"""

from __future__ import annotations

import os
from random import Random
from typing import Final

import pytest

from proof.models.epoch import EpochResult, Placement, Transaction, run_epoch
from proof.models.history import check_all, main
from proof.models.lock_phase import Shape
from proof.models.patch_rounds import Cap, verdicts
from proof.models.programs import Call, Program
from proof.models.runner import Failed, Place

SEEDS: Final = int(os.environ.get("STYX_MODEL_SEEDS", "100"))
LEAF: Final[Program] = (("mix", 1),)


def run(roots: list[tuple[int, Program]], n_keys: int = 400, n_slots: int = 4) -> EpochResult:
    """One epoch with these transactions."""
    batch = [Transaction(tid, Call(key, program, 0, 0, False)) for tid, (key, program) in enumerate(roots)]
    return run_epoch({}, batch, Shape(n_slots, n_keys, 1_000), Cap(), Placement(1, Random(0)), {})


def rounds(result: EpochResult) -> tuple[int, int]:
    """The rounds of the lock phase, and how many transactions were carried."""
    assert result.lock is not None
    return result.lock.rounds, len(result.carried)


def test_random_histories_equal_serial_execution() -> None:
    tally, failures = check_all(range(SEEDS))
    assert not failures
    if SEEDS >= 100:
        assert tally.ends["phase 2 aborted"] > 20
        assert tally.ends["cut"] > 10
        assert max(tally.patched) >= Cap().rounds
        assert tally.patched[1] > 50


def test_the_command_prints_what_it_reached(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--seeds", "3", "--first", "5"]) == 0
    assert "0 of 3 seeds failed" in capsys.readouterr().out


@pytest.mark.parametrize("target", [("at", 1), ("by", 7)], ids=["argument", "key"])
def test_a_number_that_travels_takes_two_rounds(target: tuple[str, int]) -> None:
    result = run([(0, (("add", 1), ("call", "async", target, LEAF)))] * 90)
    assert rounds(result) == (2, 0)


def test_a_number_that_is_asked_for_takes_two_rounds() -> None:
    result = run([(1 + n, (("call", "sync", ("at", 0), (("add", 1),)), ("mix", 1))) for n in range(90)])
    assert rounds(result) == (2, 0)


def test_a_number_that_is_asked_for_and_passed_on_takes_four() -> None:
    asked = ("call", "sync", ("at", 0), (("add", 1),))
    result = run([(1 + n, (asked, ("call", "sync", ("at", 300 + n % 50), LEAF))) for n in range(90)])
    assert rounds(result) == (4, 0)


def test_results_that_stay_cost_no_round() -> None:
    ask = (("call", "sync", ("at", 302), (("read",),)), ("argument",))
    program = (("add", 1), ("call", "async", ("at", 5), ask * 3))
    assert rounds(run([(0, program)] * 90)) == (3, 0)


def test_a_long_chain_is_given_up_alone() -> None:
    chain: Program = LEAF
    for _ in range(20):
        chain = (("mix", 1), ("call", "sync", ("by", 3), chain))
    rng = Random(1)
    roots: list[tuple[int, Program]] = [(rng.randrange(20), (("mix", rng.randrange(9)),)) for _ in range(199)]
    roots.insert(100, (0, chain))
    result = run(roots, n_keys=20)
    assert [t.tid for t in result.carried] == [100]
    assert rounds(result) == (Cap().rounds + 1, 1)


def test_without_patches_there_is_one_round() -> None:
    result = run([(0, (("add", 1), ("call", "async", ("at", 1), LEAF)))] * 2, n_slots=1)
    assert rounds(result) == (1, 0)


FAILED: Final = Failed(Place((), (0,)), "low")
LIMITED: Final = Failed(Place((), (0,)), "too many", limit=True)


@pytest.mark.parametrize(
    ("failures", "patched", "expected"),
    [
        ({3: FAILED, 5: FAILED}, set(), {3: FAILED, 5: None}),
        ({3: FAILED, 5: FAILED}, {4}, {3: FAILED}),
        ({3: FAILED, 5: FAILED}, {3}, {}),
        ({3: FAILED, 5: FAILED}, {2}, {}),
        ({3: LIMITED, 5: FAILED}, set(), {3: None, 5: None}),
    ],
)
def test_only_the_lowest_settled_exception_is_final(
    failures: dict[int, Failed], patched: set[int], expected: dict[int, Failed | None]
) -> None:
    assert verdicts(failures, frozenset(patched)) == expected


def test_a_call_that_moves_to_its_callers_slot_meets_its_former_self() -> None:
    # On slot 0 the invocation at 0.0 runs as an entry of the call to slot 1, and as a call of the moved invocation.
    below: Program = (("call", "sync", ("at", 0), (("call", "async", ("at", 0), LEAF),)),)
    moving: Program = (
        ("read",),
        ("if", 1, (("call", "sync", ("at", 1), below),), (("call", "async", ("at", 4), below),)),
    )
    result = run([(0, (("add", 1),)), (0, moving)])
    assert rounds(result) == (3, 0)
