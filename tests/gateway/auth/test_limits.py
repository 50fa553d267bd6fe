"""Limits by identity and by address, by hand-set seconds."""

import pytest

from styx.gateway.auth.identity import Identity
from styx.gateway.auth.limits import (
    ADDRESSES_MAX,
    FAILURES_AT_ONCE_MAX,
    FAILURES_PER_SECOND_MAX,
    IDENTITIES_MAX,
    FailedAttempts,
    Limits,
    TokenBucket,
)

# Bucket --------------------------------------------------------------------------------------------------


def test_so_many_at_once_and_then_a_rate() -> None:
    bucket = TokenBucket(3, 100.0)
    assert [bucket.take(3, 0.5, 100.0) for _ in range(4)] == [None, None, None, 2]
    assert bucket.take(3, 0.5, 101.0) == 1
    assert bucket.take(3, 0.5, 102.0) is None
    assert bucket.take(3, 0.5, 50.0) == 2, "a clock that goes back gives nothing"
    assert [bucket.take(3, 0.5, 1_000.0) for _ in range(4)] == [None, None, None, 2], "nothing more is saved up"


# By identity ---------------------------------------------------------------------------------------------


A, B = Identity("a", "key a"), Identity("b", "key b")


def test_a_rate() -> None:
    limits = Limits(rate=2.0)
    assert [limits.enter(A, 0.0) is None for _ in range(4)] == [True, True, False, False]
    assert limits.enter(B, 0.0) is None, "another one has its own"
    assert limits.enter(A, 0.4) is not None
    assert limits.enter(A, 0.5) is None
    assert limits.enter(A, 0.5) is not None
    assert [limits.enter(A, 60.0) is None for _ in range(3)] == [True, True, False], "nothing is saved up"
    assert limits.enter(A, 59.0) is not None, "a clock that goes back gives nothing"


def test_when_to_come_again() -> None:
    limits = Limits(rate=0.1)
    assert limits.enter(A, 0.0) is None
    exceeded = limits.enter(A, 0.0)
    assert exceeded is not None
    assert exceeded.retry_s == 10
    assert "a may send 0.1 requests a second" in exceeded.what
    assert limits.enter(A, 10.0) is None


def test_in_flight() -> None:
    limits = Limits(in_flight=2)
    assert [limits.enter(A, 0.0) is None for _ in range(3)] == [True, True, False]
    assert limits.enter(B, 0.0) is None
    limits.leave(A)
    assert limits.enter(A, 0.0) is None


def test_an_identity_may_have_its_own() -> None:
    limits = Limits(rate=1.0, in_flight=1)
    own = Identity("c", "key c", None, 3.0, 5)
    assert [limits.enter(own, 0.0) is None for _ in range(4)] == [True, True, True, False]


def test_without_limits() -> None:
    limits = Limits()
    assert all(limits.enter(A, 0.0) is None for _ in range(1000))


def test_who_is_counted_is_bounded_and_who_is_served_is_not_forgotten() -> None:
    limits = Limits(rate=1.0)
    assert limits.enter(A, 0.0) is None
    for number in range(2 * IDENTITIES_MAX):
        one = Identity(str(number), str(number))
        limits.enter(one, 0.0)
        limits.leave(one)
    assert len(limits._uses) <= IDENTITIES_MAX + 1
    assert limits.enter(A, 0.0) is not None, "it is still under way, and counted"
    limits.leave(B)  # never came


# By address ----------------------------------------------------------------------------------------------


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
