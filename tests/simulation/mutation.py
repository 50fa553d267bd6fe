"""What it means that the simulator catches a mutation, a rule of the protocol that is broken on purpose.

A mutation that no seed catches means that a rule is not tested; the seeds tried are few, so that the ones which catch
it are common. A mutation that crashes shows nothing: the product may have changed since, and the rule is then as good
as untested.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, Final

import pytest
from msgspec.structs import replace

from proof.simulation import SimulationFailure, random_plan, simulate

SEEDS_MAX = 400
ONLY_IF_ASKED: Final = {
    "links": 0.0,
    "laters": 0.0,
    "emits": 0.0,
    "lives": 0.0,
    "crons": False,
    "ingests": 0.0,
    "contended": 0.0,
}
"""What no plan has unless the mutation asks for it: it makes each seed dearer, and hides what else goes on."""
CRASHES: Final = AttributeError, TypeError, NameError
"""What a mutation raises that names something the product no longer has, or calls it in another way."""
_NAMES: Final = "|".join(kind.__name__ for kind in CRASHES)
_EXPECTED: Final = re.compile(rf"^  expected \w++: (?:{_NAMES}): ", re.MULTILINE)
_GOT: Final = re.compile(rf"^  got      \w++: (?:{_NAMES}): .*+", re.MULTILINE)

Mutation = Callable[[pytest.MonkeyPatch], None]


def assert_caught(mutation: Mutation, pace: Mapping[str, Any], *, cluster: bool, first: int = 0) -> None:
    """One of the first seeds fails, with a plan that is of a `cluster` or not, and changed by `pace`.

    `first` is tried before the others: one that is known to notice it at once. Seeds change their runs with the
    simulator; where the first one has, the others are searched as ever, and the test prints which one it is now.
    """
    for seed in dict.fromkeys((first, *range(SEEDS_MAX))):
        try:
            simulate(replace(random_plan(seed, cluster=cluster), **ONLY_IF_ASKED | dict(pace)))
        except SimulationFailure as failure:
            refuse_crash(mutation, failure)
            if seed != first:
                print(f"{mutation.__name__}: the first to notice is {seed}; {first} was tried before")
            return
    pytest.fail(f"{SEEDS_MAX} seeds did not notice: {mutation.__name__}")


def refuse_crash(mutation: Mutation, failure: AssertionError) -> None:
    """Fails the test if the failure is only a crash."""
    crash = crash_of(failure)
    if crash is not None:
        pytest.fail(f"{mutation.__name__} breaks itself, and no rule: {crash}")


def crash_of(failure: BaseException) -> str | None:
    """The crash that a failure comes from, None if a guarantee did not hold. It may be wrapped in another error, as of
    an engine that failed; and within a transaction it is the error of a reply that should have been another one.
    """
    cause: BaseException | None = failure
    while cause is not None:
        if isinstance(cause, CRASHES):
            return f"{type(cause).__name__}: {cause}"
        cause = cause.__cause__ or (None if cause.__suppress_context__ else cause.__context__)
    text = str(failure)
    got = _GOT.search(text)
    return got[0].strip() if got is not None and _EXPECTED.search(text) is None else None
