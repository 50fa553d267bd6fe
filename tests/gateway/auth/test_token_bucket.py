"""A token bucket, by hand-set seconds."""

from styx.gateway.auth.token_bucket import TokenBucket


def test_so_many_at_once_and_then_a_rate() -> None:
    bucket = TokenBucket(3, 100.0)
    assert [bucket.take(3, 0.5, 100.0) for _ in range(4)] == [None, None, None, 2]
    assert bucket.take(3, 0.5, 101.0) == 1
    assert bucket.take(3, 0.5, 102.0) is None
    assert bucket.take(3, 0.5, 50.0) == 2, "a clock that goes back gives nothing"
    assert [bucket.take(3, 0.5, 1_000.0) for _ in range(4)] == [None, None, None, 2], "nothing more is saved up"
