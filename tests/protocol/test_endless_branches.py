"""Branches that are left out since another did not end: what comes earlier in serial order is not forgotten.

Too rare for the simulator's seeds, so the transcript shows it, and here the rule is broken on purpose.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from styx.errors import EngineFailed
from styx.testing.history import SerializabilityViolation
from styx.worker.cuts import Stopped
from styx.worker.endings import Endings
from styx.worker.root import RootAccounts
from tests.plain_form import plain_form
from tests.protocol.commands import Session
from tests.protocol.transcript import parse

pytestmark = plain_form

TRANSCRIPT = Path(__file__).parent / "transcripts" / "endless_branches.txt"


def run_transcript() -> None:
    session = Session()
    for entry in parse(TRANSCRIPT.read_text()):
        for command in entry.commands:
            session.execute(command)
    session.finish()


def test_what_the_transcript_does_is_serializable() -> None:
    run_transcript()


def test_what_comes_earlier_must_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Stopped, "given_up", lambda *_: True)
    with monkeypatch.context() as patch:
        patch.setattr(Endings, "_abandon", _without_collision(Endings._abandon))
        with pytest.raises(SerializabilityViolation):
            run_transcript()
    run_transcript()  # in sequential mode all of it is found out


def _without_collision(original: Any) -> Any:
    def abandon(self: Endings, invocation: Any, failure: Any) -> None:
        invocation._footprint.collided = False
        original(self, invocation, failure)

    return abandon


def test_what_was_dropped_before_it_ran_is_on_record(monkeypatch: pytest.MonkeyPatch) -> None:
    original = RootAccounts._credit

    def credit(self: RootAccounts, ack: Any) -> None:
        original(self, ack)
        self.cut_roots = [root for root in self.cut_roots if root.cut]

    with monkeypatch.context() as patch:
        patch.setattr(RootAccounts, "_credit", credit)
        with pytest.raises(EngineFailed, match="the replay of transaction 1 does not end"):
            run_transcript()
