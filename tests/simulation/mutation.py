"""What it means that the simulator catches a mutation, a rule of the protocol that is broken on purpose.

A mutation that no seed catches means that a rule is not tested; the seeds tried are few, so that the ones which catch
it are common.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest
from msgspec.structs import replace

from proof.simulation import SimulationFailure, random_plan, simulate

SEEDS_MAX = 400
OUT_OF_DATE = AttributeError, TypeError, NameError
"""What a mutation raises that names something the product no longer has."""

Mutation = Callable[[pytest.MonkeyPatch], None]


def assert_caught(mutation: Mutation, pace: Mapping[str, Any], *, cluster: bool, first: int = 0) -> None:
    """One of the first seeds fails, with a plan that is of a `cluster` or not, and changed by `pace`.

    `first` is tried before the others: one that is known to notice what few do.
    """
    for seed in dict.fromkeys((first, *range(SEEDS_MAX))):
        try:
            simulate(replace(random_plan(seed, cluster=cluster), **pace))
        except SimulationFailure as failure:
            if isinstance(failure.__cause__, OUT_OF_DATE):
                pytest.fail(f"{mutation.__name__} breaks itself, and no rule: {failure.__cause__}")
            return
    pytest.fail(f"{SEEDS_MAX} seeds did not notice: {mutation.__name__}")
