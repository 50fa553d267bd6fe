"""Replies that stand twice in the topic."""

from __future__ import annotations

from benchmarks.driver.deployment.replies import Replies, count_replies


def test_a_repeated_reply_is_counted_each_time() -> None:
    assert count_replies([5, 9, 13]) == Replies(3, 0)
    assert count_replies([5, 9, 5, 13, 5]) == Replies(5, 2)
