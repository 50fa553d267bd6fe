"""The limit of failed attempts by address, by hand-set seconds."""

import pytest

from styx.gateway.auth.failed_attempts import (
    ADDRESSES_MAX,
    FAILURES_AT_ONCE_MAX,
    FAILURES_PER_SECOND_MAX,
    FailedAttempts,
)


def exhausted(failures: FailedAttempts, address: str, now_s: float = 0.0) -> None:
    for _ in range(FAILURES_AT_ONCE_MAX):
        assert failures.failed(address, now_s) is None


def test_so_many_at_once_and_then_one_now_and_then() -> None:
    failures, wait_s = FailedAttempts(), 1 / FAILURES_PER_SECOND_MAX
    exhausted(failures, "10.0.0.1")
    assert failures.failed("10.0.0.1", 0.0) == wait_s
    assert failures.failed("10.0.0.2", 0.0) is None, "another address has its own"
    assert failures.failed("10.0.0.1", wait_s - 1) == 1, "trying meanwhile does not make it longer"
    assert failures.failed("10.0.0.1", wait_s) is None
    assert failures.failed("10.0.0.1", wait_s) == wait_s
    assert failures.failed("10.0.0.1", 0.0) is not None, "a clock that goes back gives nothing"
    exhausted(failures, "10.0.0.1", 1e6)
    assert failures.failed("10.0.0.1", 1e6) is not None, "nothing more is saved up"


@pytest.mark.parametrize(
    ("address", "same", "other"),
    [
        ("2001:db8::1", "2001:db8::ffff:1", "2001:db8:0:1::1"),
        ("::ffff:10.0.0.1", "10.0.0.1", "10.0.0.2"),
        ("", "", "unix"),
    ],
)
def test_what_counts_as_one(address: str, same: str, other: str) -> None:
    failures = FailedAttempts()
    exhausted(failures, address)
    assert failures.failed(same, 0.0) is not None
    assert failures.failed(other, 0.0) is None


def test_memory_is_bounded() -> None:
    failures = FailedAttempts()
    exhausted(failures, "10.0.0.1")
    for number in range(ADDRESSES_MAX):
        failures.failed(f"a{number}", 0.0)
    assert len(failures._uses) == ADDRESSES_MAX
    assert failures.failed("10.0.0.1", 0.0) is None, "who failed least lately is forgotten"
