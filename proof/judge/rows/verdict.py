"""The verdict on a history of shelves: the claimed order, the search of any order, and adya's."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from proof.judge import adya
from proof.judge.recorded import Recorded
from proof.judge.rows.claimed_order import problems
from proof.judge.rows.dependencies import anomalies
from proof.judge.rows.lists import as_lists

ADYA_FOLDER = "rows"
"""The history in adya's words goes into this folder, beside the history of rows."""


class RowsVerdict(NamedTuple):
    """`problems` of the claimed order, `anomalies` of any order, and adya's verdict."""

    problems: list[str]
    anomalies: list[str]
    adya: adya.Verdict


def check_rows(recorded: Recorded, folder: Path) -> RowsVerdict:
    """Judges a history of rows, of which `folder` holds the file. Raises `ConfigurationError` if adya is missing."""
    lists = as_lists(recorded)
    lists.save(folder / ADYA_FOLDER)
    return RowsVerdict(problems(recorded), anomalies(recorded), adya.check(lists, folder / ADYA_FOLDER))
