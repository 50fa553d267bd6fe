"""All checks of rows on an engine that loses power again and again, by the command."""

from __future__ import annotations

from pathlib import Path

import pytest

from proof.judge.__main__ import main
from proof.judge.recorded import load
from proof.judge.rows.verdict import check_rows

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("judge")]


def test_the_command_records_rows_and_judges_and_judges_again(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["run", "--model", "rows", "--transactions", "1500", "--out", str(tmp_path)]) == 0
    assert main(["check", str(tmp_path)]) == 0
    first, second = capsys.readouterr().out.splitlines()
    assert first == second
    assert first.startswith("rows: ")
    assert " 0 info; " in first
    assert first.endswith(" in phase 3: strictly serializable; 0 problems with the claimed order")
    (recorded,) = load(tmp_path)
    assert check_rows(recorded, tmp_path) == ([], [], (True, {}))


def test_a_history_with_an_anomaly_is_told_and_is_the_exit_status(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["run", "--model", "rows", "--transactions", "300", "--out", str(tmp_path)]) == 0
    (recorded,) = load(tmp_path)
    shown = [
        step for op in recorded.ops if op.type == "ok" for step in op.value if step[0] == "query" and step[2] == "keys"
    ]
    next(step for step in shown if len(step[5]) > 1)[5].pop()
    recorded.save(tmp_path)
    capsys.readouterr()
    assert main(["check", str(tmp_path)]) == 1
    assert "NOT strictly serializable; 1 problems with the claimed order" in capsys.readouterr().out
