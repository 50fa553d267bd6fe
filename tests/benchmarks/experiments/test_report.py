"""An experiment is carried out: what is written, and what its failure leaves."""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path

import msgspec
import pytest

from benchmarks.experiments.bench import Bench, StepFailed
from benchmarks.experiments.report import Shown, carry_out
from benchmarks.experiments.settings import Common, add_options
from benchmarks.reference.line import FAILED, OK, USAGE
from styx.errors import ConfigurationError


class Seen(msgspec.Struct):
    figure: int


def show(found: Sequence[Seen]) -> Shown:
    text = " ".join(str(each.figure) for each in found)

    def draw(path: Path) -> None:
        path.write_text(f"<svg>{text}", "utf-8")

    return Shown(text, {"it-drawn": draw})


def carried_out(out: Path, figures: list[int], error: Exception | None) -> int:
    parser = argparse.ArgumentParser()
    add_options(parser, Common())

    async def measure(_bench: Bench, _options: argparse.Namespace, found: list[Seen]) -> None:
        found += [Seen(figure) for figure in figures]
        if error is not None:
            raise error

    return carry_out("it", parser.parse_args(["--out", str(out)]), measure, show)


def test_all_is_written_and_the_table_printed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "new"
    assert carried_out(out, [1, 2], None) == OK
    report = json.loads((out / "it.json").read_text("utf-8"))
    assert (report["experiment"], report["found"], report["failed"]) == ("it", [{"figure": 1}, {"figure": 2}], "")
    assert report["environment"]["processors"] >= 1
    assert (out / "it.txt").read_text("utf-8") == capsys.readouterr().out == "1 2\n"
    assert (out / "it-drawn.svg").read_text("utf-8") == "<svg>1 2"


def test_a_failure_leaves_what_was_found_before(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert carried_out(tmp_path, [1], StepFailed("too slow")) == FAILED
    assert json.loads((tmp_path / "it.json").read_text("utf-8"))["failed"] == "too slow"
    assert (tmp_path / "it.txt").read_text("utf-8") == "1\n"
    assert "it FAILED: too slow" in capsys.readouterr().err


def test_if_nothing_was_found_there_is_no_chart(tmp_path: Path) -> None:
    assert carried_out(tmp_path, [], OSError("no broker")) == FAILED
    assert [path.name for path in tmp_path.iterdir()] == ["it.json"]


def test_wrong_options_write_nothing(tmp_path: Path) -> None:
    assert carried_out(tmp_path, [], ConfigurationError("--x is wrong")) == USAGE
    assert not list(tmp_path.iterdir())
