"""What the verdicts of an audit that followed come to: how much was judged, and what is wrong. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

from styx.audit.verdict import AGREED, DIFFERS, UNJUDGED, Verdict


class Findings(NamedTuple):
    """`intervals` agreed, with `epochs` and `replies` in them. `left_out` epochs lie between what was judged: their
    snapshots or their log had gone, or could not be reached. `wrong` are differences, and what ended the audit.
    """

    intervals: int
    epochs: int
    replies: int
    left_out: int
    wrong: list[str]


def findings(verdicts: Sequence[Verdict]) -> Findings:
    """Of the verdicts in their order. Without one that agreed nothing is proven, and that is wrong as well."""
    agreed = [verdict for verdict in verdicts if verdict.outcome == AGREED]
    judged = [verdict for verdict in verdicts if verdict.outcome != UNJUDGED]
    wrong = [line for verdict in verdicts if verdict.outcome == DIFFERS for line in verdict.lines()]
    wrong += [verdict.lines()[0] for verdict in verdicts if verdict.outcome == UNJUDGED and not verdict.passing]
    if not agreed:
        wrong.append("no interval was judged and agreed")
    left_out = sum(max(after.after - before.until, 0) for before, after in pairwise(judged))
    return Findings(
        len(agreed),
        sum(verdict.epochs for verdict in agreed),
        sum(verdict.replies for verdict in agreed),
        left_out,
        wrong,
    )
