"""Limits: all of them named, none of them zero."""

from __future__ import annotations

import msgspec
import pytest

from styx.model.limits import (
    CLOSED_PATIENCE,
    END_SECONDS,
    PEER_SECONDS,
    REPLAY_PATIENCE,
    SECONDS_MAX,
    STOP_SECONDS,
    STUCK_SECONDS_MAX,
    Limits,
    alive_seconds_max,
    end_seconds_max,
    peer_silence_seconds,
    stop_seconds_max,
)

NAMES = [field.name for field in msgspec.structs.fields(Limits) if field.type is int]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("value", [0, -1])
def test_a_limit_of_nothing_is_refused_by_name(name: str, value: int) -> None:
    with pytest.raises(ValueError, match=f"Limits.{name} must be at least 1, not {value}"):
        Limits(**{name: value})


@pytest.mark.parametrize("seconds", [0, -1.0, 0.01, 1e9, float("nan"), float("inf")])
def test_a_function_has_some_time(seconds: float) -> None:
    with pytest.raises(ValueError, match=r"Limits\.function_seconds_max must be from 0.05 to 86400, not"):
        Limits(function_seconds_max=seconds)


def test_the_smallest_limits_are_possible() -> None:
    assert Limits(**dict.fromkeys(NAMES, 1)).slice_invocations == 1


@pytest.mark.parametrize(("calls", "total", "share"), [(10_000, 512 * 1024 * 1024, 53_687), (10, 99, 9), (100, 10, 1)])
def test_a_call_has_a_share_of_the_bytes(calls: int, total: int, share: int) -> None:
    assert Limits(invocations_max=calls, transaction_bytes_max=total).call_bytes == share


def test_limits_are_named_and_never_change() -> None:
    with pytest.raises(TypeError):
        Limits(5)  # type: ignore[call-arg]
    with pytest.raises(AttributeError):
        Limits().in_flight_max = 5  # type: ignore[misc]


# Patience ------------------------------------------------------------------------------------------------------------


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
