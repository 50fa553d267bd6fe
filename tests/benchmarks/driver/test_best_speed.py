"""The best time of the fixed work is kept over commands; nothing breaks where it cannot be."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from benchmarks.driver.best_speed import best_ms, place
from benchmarks.driver.calibration import Calibration
from tests.benchmarks.driver.made import ENVIRONMENT


def beside(*cpu_ms: float) -> list[Calibration]:
    return [Calibration(cpu_ms=each, wall_ms=100) for each in cpu_ms]


def test_the_best_of_all_commands_is_kept_for_each_interpreter() -> None:
    assert best_ms(ENVIRONMENT, beside(50, 52)) == 51
    assert best_ms(ENVIRONMENT, beside(40, 40)) == 40
    assert best_ms(ENVIRONMENT, beside(60, 60)) == 40
    other = msgspec.structs.replace(ENVIRONMENT, interpreter="Snake 10")
    assert best_ms(other, beside(70, 70)) == 70


def test_a_damaged_file_is_made_anew() -> None:
    place().parent.mkdir(parents=True, exist_ok=True)
    place().write_text("{")
    assert best_ms(ENVIRONMENT, beside(50, 50)) == 50
    assert msgspec.json.decode(place().read_bytes()) == {"Snake 9.9 on abacus": 50.0}


def test_without_a_folder_the_runs_own_time_is_the_best(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("STYX_BENCHMARKS_CACHE", str(tmp_path / "file"))
    assert best_ms(ENVIRONMENT, beside(50, 50)) == 50
    assert best_ms(ENVIRONMENT, beside(60, 60)) == 60
