"""What verdicts come to."""

from __future__ import annotations

from benchmarks.audited.findings import Findings, findings
from styx.audit.verdict import DIFFERS, UNJUDGED, Verdict

AGREED = [Verdict(after=10, until=20, epochs=10, replies=7), Verdict(after=20, until=25, epochs=5, replies=2)]


def test_agreement_is_counted() -> None:
    assert findings(AGREED) == Findings(intervals=2, epochs=15, replies=9, left_out=0, wrong=[])


def test_a_difference_is_wrong_and_told_whole() -> None:
    differing = Verdict(after=25, until=30, outcome=DIFFERS, state_differences=1)
    found = findings([*AGREED, differing])
    assert found.wrong == differing.lines()
    assert found.intervals == 2


def test_what_is_between_two_judged_intervals_was_left_out() -> None:
    passing = Verdict(after=25, until=40, outcome=UNJUDGED, reason="the store was away", passing=True)
    assert findings([*AGREED, passing, Verdict(after=40, until=50, epochs=10)]) == Findings(3, 25, 9, 15, [])


def test_an_audit_that_ended_is_wrong() -> None:
    ended = Verdict(after=25, until=40, outcome=UNJUDGED, reason="another app")
    assert findings([*AGREED, ended]).wrong == ended.lines()


def test_nothing_judged_proves_nothing() -> None:
    passing = Verdict(after=0, until=40, outcome=UNJUDGED, reason="the store was away", passing=True)
    assert findings([]).wrong == findings([passing]).wrong == ["no interval was judged and agreed"]
