"""Epochs are brought to the size of others'."""

from __future__ import annotations

import pytest

from benchmarks.experiments.targets.pacing import Pacing


def test_epochs_that_are_too_large_come_sooner_and_small_ones_later() -> None:
    said: list[float] = []
    pacing = Pacing(said.append, 0.03)
    pacing.want(150)
    pacing.had(200)
    pacing.had(100)
    assert said == pytest.approx([0.03, 0.0225, 0.03375])


def test_with_a_size_that_is_not_known_nothing_changes() -> None:
    said: list[float] = []
    pacing = Pacing(said.append, 0.03)
    pacing.had(200)
    pacing.want(150)
    pacing.had(0)
    assert said == [0.03]
