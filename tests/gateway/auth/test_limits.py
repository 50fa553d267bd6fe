"""Limits of each identity: rate and requests in flight, by hand-set seconds."""

from styx.gateway.auth.identity import Identity
from styx.gateway.auth.limits import IDENTITIES_MAX, Limits

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
