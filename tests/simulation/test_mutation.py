"""A crash is told apart from a guarantee that did not hold."""

from __future__ import annotations

import pytest

from proof.simulation import SimulationFailure
from styx.errors import EngineFailed
from tests.simulation.mutation import crash_of


def failure(text: str, cause: BaseException | None) -> SimulationFailure:
    found = SimulationFailure(text)
    found.__cause__ = cause
    return found


@pytest.mark.parametrize("kind", [AttributeError, TypeError, NameError])
def test_a_crash_is_found_under_what_wraps_it(kind: type[Exception]) -> None:
    assert crash_of(failure("seed 1", kind("gone"))) == f"{kind.__name__}: gone"
    wrapped = EngineFailed("the engine failed")
    wrapped.__cause__ = kind("gone")
    assert crash_of(failure("seed 1", wrapped)) == f"{kind.__name__}: gone"


@pytest.mark.parametrize(
    ("expected", "got", "crash"),
    [
        ("result 1", "aborted: TypeError: f() takes 2 arguments", True),
        ("aborted: Low: 1", "aborted: AttributeError: no x", True),
        ("aborted: TypeError: None was awaited", "aborted: TypeError: of the program's own", False),
        ("aborted: TypeError: None was awaited", "result 1", False),
        ("result 1", "result 'aborted: TypeError: x'", False),
        ("result 1", "aborted: Low: 1", False),
    ],
)
def test_a_crash_within_a_transaction_is_found_in_the_reply(expected: str, got: str, crash: bool) -> None:
    text = f"seed 1: SerializabilityViolation: no.\n  expected {expected}\n  got      {got}\n  it ran on nothing"
    found = crash_of(failure(text, AssertionError("no")))
    assert found == (f"got      {got}" if crash else None)
