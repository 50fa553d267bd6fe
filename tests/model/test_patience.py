"""What waits for a function waits longer than the function may run, whatever the deployment's limit is."""

from __future__ import annotations

import pytest

from styx.model.limits import SECONDS_MAX, Limits
from styx.model.patience import (
    CLOSED_PATIENCE,
    END_SECONDS,
    PEER_SECONDS,
    REPLAY_PATIENCE,
    STOP_SECONDS,
    STUCK_SECONDS_MAX,
    alive_seconds_max,
    end_seconds_max,
    peer_silence_seconds,
    stop_seconds_max,
)

LIMITS_S = [0.05, 10.0, 60.0, 3600.0, SECONDS_MAX]


@pytest.mark.parametrize("limit_s", LIMITS_S)
@pytest.mark.parametrize("patience", [1, REPLAY_PATIENCE, CLOSED_PATIENCE])
def test_each_waits_longer_than_the_one_before(limit_s: float, patience: int) -> None:
    may_run_s = limit_s * patience
    assert may_run_s < alive_seconds_max(may_run_s) < peer_silence_seconds(Limits(function_seconds_max=limit_s))


def test_the_times_of_the_default_limit() -> None:
    limits = Limits()
    assert alive_seconds_max(limits.function_seconds_max) == 10.0 + STUCK_SECONDS_MAX
    assert peer_silence_seconds(limits) == 300.0 + STUCK_SECONDS_MAX + PEER_SECONDS
    assert end_seconds_max(limits) == 10.0 + END_SECONDS
    assert stop_seconds_max(limits) == 10.0 + END_SECONDS + STOP_SECONDS


@pytest.mark.parametrize("limit_s", LIMITS_S)
def test_who_stops_a_process_lets_its_function_end(limit_s: float) -> None:
    limits = Limits(function_seconds_max=limit_s)
    assert limit_s < end_seconds_max(limits) < stop_seconds_max(limits)
