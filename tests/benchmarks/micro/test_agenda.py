"""The benchmark of an agenda of many calls, with few."""

from __future__ import annotations

from pathlib import Path

from benchmarks.micro.agenda import deliver, make, start


def test_a_snapshot_of_the_agenda_is_a_start(tmp_path: Path) -> None:
    committed, ordered, _, size, manifest = make(500, str(tmp_path))
    assert min(committed.seconds, ordered.seconds) > 0
    assert size > 500 * 20
    assert start(str(tmp_path), manifest)[0].seconds > 0


def test_calls_that_are_due_at_once_are_made_once(tmp_path: Path) -> None:
    made = deliver(1_200, str(tmp_path))
    assert made.wrong == 0
    assert made.seconds > 0
