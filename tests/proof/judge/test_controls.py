"""What a fault in each kind of transaction would do, written down by hand: the judge must see it.

Each control is a pair of histories: one that is right, and one with a single difference. `test_broken_kinds.py` has
engines that are broken.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from proof.judge import adya
from proof.judge.claimed_order import problems
from proof.judge.record import steps_of
from proof.judge.recorded import Recorded, Recorder, Step
from proof.judge.workload import MODELS, Model

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("judge")]


class History:
    """A history in the words of both models. `written` are the values of an entity, oldest first."""

    def __init__(self, model: Model) -> None:
        self.model = model
        self.recorder = Recorder(model)
        self._tid = 0

    def read(self, n: int, *written: int | str) -> list[Step]:
        value: Any = list(written) if self.model == "list-append" else written[-1] if written else None
        return [["r", n, value or None]]

    def write(self, n: int, value: int | str) -> list[Step]:
        return [["append" if self.model == "list-append" else "w", n, value]]

    def take(self, n: int, number: int) -> list[Step]:
        return steps_of(self.model, "next", n, number)

    def last(self, n: int, number: int) -> list[Step]:
        return steps_of(self.model, "last", n, number)

    def alone(self, phase: int, *steps: list[Step]) -> None:
        """A transaction that begins and ends by itself, in an epoch of its own."""
        self.beside((phase, *steps))

    def beside(self, *transactions: Any) -> None:
        """Transactions of one epoch, in its serial order: all begin, and then all end."""
        self._tid += 1
        for process, _ in enumerate(transactions):
            self.recorder.begin(process, [])
        for process, (phase, *steps) in enumerate(transactions):
            place = (self._tid, phase, 10 * self._tid + process)
            self.recorder.commit(process, [step for each in steps for step in each], place)


def a_read_of_phase_0_is_stale(h: History, false: bool) -> None:
    h.alone(1, h.write(1, 1_000))
    h.alone(2, h.write(1, 2_000))
    h.alone(0, h.read(1, 1_000) if false else h.read(1, 1_000, 2_000))


def a_read_of_phase_0_is_of_two_moments(h: History, false: bool) -> None:
    h.alone(1, h.write(1, 1_000), h.write(2, 2_000))
    h.beside(
        (0, h.read(1, 1_000), h.read(2, 2_000, 4_000) if false else h.read(2, 2_000)),
        (1, h.write(1, 3_000), h.write(2, 4_000)),
    )
    h.alone(0, h.read(1, 1_000, 3_000), h.read(2, 2_000, 4_000))


def a_number_of_a_sequence_is_given_twice(h: History, false: bool) -> None:
    h.alone(1, h.take(1, 1))
    h.beside((1, h.take(1, 2)), (2, h.take(1, 2 if false else 3)))


def a_number_of_a_sequence_is_stale_in_phase_0(h: History, false: bool) -> None:
    h.alone(3, h.take(1, 1))
    h.alone(3, h.take(1, 2))
    h.alone(0, h.last(1, 1 if false else 2))


def a_number_of_a_sequence_is_left_out(h: History, false: bool) -> None:
    h.alone(1, h.take(1, 1))
    h.alone(1, h.take(1, 3 if false else 2))


def a_local_write_is_lost(h: History, false: bool) -> None:
    h.alone(1, h.write(1, 1_000))
    h.alone(3, h.write(1, 2_000))
    h.alone(1, h.read(1, 1_000) if false else h.read(1, 1_000, 2_000))


def half_of_a_local_transaction_is_lost(h: History, false: bool) -> None:
    h.beside((1, h.write(1, 1_000), h.write(2, 2_000)), (3, h.write(1, 3_000), h.write(2, 4_000)))
    h.alone(0, h.read(1, 1_000, 3_000), h.read(2, 2_000) if false else h.read(2, 2_000, 4_000))


def a_local_transaction_does_not_see_the_lock_phase(h: History, false: bool) -> None:
    h.alone(1, h.write(1, 1_000))
    h.beside(
        (2, h.read(1, 1_000), h.write(1, 2_000)),
        (3, h.read(1, 1_000) if false else h.read(1, 1_000, 2_000), h.write(1, 3_000)),
    )


def a_number_that_travelled_was_stale(h: History, false: bool) -> None:
    """The length of a list, or the number of a sequence, decides what another slot writes."""
    h.alone(1, h.take(1, 1), h.write(2, 1_001))
    h.beside(
        (1, h.take(1, 2), h.write(3, 2_002)),
        (2, h.last(1, 1 if false else 2), h.write(3, 3_001 if false else 3_002)),
    )
    read = (2_002, 3_001 if false else 3_002)
    h.alone(0, h.read(3, *read))
    h.alone(1, h.last(1, 2), h.write(3, 4_002))


def an_argument_was_not_the_number_that_was_read(h: History, false: bool) -> None:
    h.alone(2, h.take(1, 1), h.write(2, 1_001))
    h.alone(0, h.read(2, 1_000 if false else 1_001))


def a_unique_id_is_given_twice(h: History, false: bool) -> None:
    h.alone(1, h.write(1, "A"))
    h.alone(1, h.write(2, "A" if false else "B"))
    h.alone(0, h.read(1, "A"), h.read(2, "A" if false else "B"))


def a_unique_id_is_given_twice_to_one_entity(h: History, false: bool) -> None:
    h.alone(3, h.write(1, "A"))
    h.alone(3, h.write(1, "A" if false else "B"))
    h.alone(0, h.read(1, "A", "A" if false else "B"))


CONTROLS: dict[Callable[[History, bool], None], tuple[bool, ...]] = {
    a_read_of_phase_0_is_stale: (True, True),
    a_read_of_phase_0_is_of_two_moments: (True, True),
    a_number_of_a_sequence_is_given_twice: (True, True),
    a_number_of_a_sequence_is_stale_in_phase_0: (True, True),
    a_number_of_a_sequence_is_left_out: (False, False),
    a_local_write_is_lost: (True, True),
    half_of_a_local_transaction_is_lost: (True, True),
    a_local_transaction_does_not_see_the_lock_phase: (True, True),
    a_number_that_travelled_was_stale: (True, True),
    an_argument_was_not_the_number_that_was_read: (True, False),
    a_unique_id_is_given_twice: (False, False),
    a_unique_id_is_given_twice_to_one_entity: (True, True),
}
"""Whether adya sees it in each model. Our own check sees all."""


def judged(model: Model, folder: Path, control: Callable[[History, bool], None], false: bool) -> tuple[Any, list[str]]:
    history = History(model)
    control(history, false)
    recorded: Recorded = history.recorder.recorded()
    recorded.save(folder)
    return adya.check(recorded, folder).valid, problems(recorded)


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("control", CONTROLS, ids=lambda control: control.__name__)
def test_the_judge_sees(control: Callable[[History, bool], None], model: Model, tmp_path: Path) -> None:
    assert judged(model, tmp_path, control, false=False) == (True, [])
    valid, found = judged(model, tmp_path, control, false=True)
    assert found
    assert valid is not CONTROLS[control][MODELS.index(model)]
