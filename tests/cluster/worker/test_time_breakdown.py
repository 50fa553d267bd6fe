"""Waiting, the network and the rest are told apart, and nothing is counted twice."""

from __future__ import annotations

from styx.cluster.worker.time_breakdown import TimeBreakdown


def test_waits_for_peers_are_the_network_s_and_others_are_idle() -> None:
    breakdown = TimeBreakdown()
    breakdown.begin()
    breakdown.running_s, breakdown.state_s = 4.0, 1.0
    breakdown.wait(10.0, for_peers=True)
    breakdown.moved(0.5)
    breakdown.go_on(12.0)
    breakdown.go_on(13.0)
    breakdown.wait(20.0, for_peers=False)
    breakdown.moved(0.25)
    breakdown.go_on(21.0)
    breakdown.end(3)
    breakdown.begin()
    breakdown.running_s = 100.0
    breakdown.count(10.0)
    breakdown.count(10.0)
    expected = {"function": 3.0, "state": 1.0, "network": 2.25, "idle": 0.75, "protocol": 3.0}
    assert (breakdown.seconds, breakdown.transactions) == (expected, 3)


def test_an_epoch_that_was_abandoned_leaves_nothing() -> None:
    breakdown = TimeBreakdown()
    breakdown.running_s = 4.0
    breakdown.wait(1.0, for_peers=True)
    breakdown.end(1)
    breakdown.abandon()
    breakdown.count(2.0)
    breakdown.begin()
    breakdown.go_on(9.0)
    breakdown.end(1)
    breakdown.count(2.0)
    assert breakdown.seconds == {"function": 0.0, "state": 0.0, "network": 0.0, "idle": 0.0, "protocol": 2.0}
