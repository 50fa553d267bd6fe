"""How far apart exchanges are: not at all while replies are fast, and never by much of what they take."""

from __future__ import annotations

from styx.kafka.pacing import EXCHANGE_BYTES_PAUSED, PAUSE_SECONDS_MAX, PAUSE_SHARE, Pacing


def test_nothing_waits_before_there_is_a_reply() -> None:
    pacing = Pacing()
    pacing.exchanged(0, 10.0, 100)
    assert pacing.wait_s(0, 10.0) <= 0


def test_the_pause_is_a_share_of_what_replies_take() -> None:
    pacing = Pacing()
    pacing.replied_after(0.1)
    assert pacing.wait_s(0, 10.0) <= 0
    pacing.exchanged(0, 10.0, 100)
    assert abs(pacing.wait_s(0, 10.0) - 0.1 * PAUSE_SHARE) < 1e-9
    assert pacing.wait_s(0, 10.1) <= 0
    assert pacing.wait_s(1, 10.0) <= 0  # another broker


def test_who_sends_one_request_after_the_other_never_waits() -> None:
    pacing, now_s = Pacing(), 10.0
    for _ in range(5):
        assert pacing.wait_s(0, now_s) <= 0
        pacing.exchanged(0, now_s, 100)
        now_s += 0.005
        pacing.replied_after(0.005)


def test_the_pause_has_an_end() -> None:
    pacing = Pacing()
    pacing.replied_after(60.0)
    assert pacing.pause_s == PAUSE_SECONDS_MAX


def test_a_large_exchange_is_followed_by_the_next_one_at_once() -> None:
    pacing = Pacing()
    pacing.replied_after(1.0)
    pacing.exchanged(0, 10.0, EXCHANGE_BYTES_PAUSED + 1)
    assert pacing.wait_s(0, 10.0) <= 0
