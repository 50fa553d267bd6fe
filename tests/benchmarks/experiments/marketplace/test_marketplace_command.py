"""The command's way through an experiment, with runs that did not happen, and in miniature with real ones."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import msgspec
import pytest

from benchmarks.driver.probe import Mark
from benchmarks.driver.result import Result
from benchmarks.driver.worker_death import KILLED, Death
from benchmarks.experiments.__main__ import main
from benchmarks.experiments.bench import StepFailed
from benchmarks.experiments.marketplace import step
from benchmarks.reference.line import FAILED, OK, USAGE
from tests.benchmarks.driver.test_interruption import NORMAL_US, line
from tests.benchmarks.experiments.marketplace.made import run_of

Asked = tuple[str, list[str], dict[str, str]]
DEATH = Death(
    killed_s=1.0, replaced_s=2.0, joined_s=None, pause_s=0.7, worst_us=900_000, back_s=2.0, normal_us=NORMAL_US
)


def pretend(monkeypatch: pytest.MonkeyPatch, made: Callable[[Sequence[str]], Result]) -> list[Asked]:
    """Lets runs give what is `made` of their words; the runs that were asked for."""
    asked: list[Asked] = []

    async def driven(workload: str, words: Sequence[str], environment: Mapping[str, str]) -> Result:
        asked.append((workload, [*words], {**environment}))
        return made(words)

    monkeypatch.setattr(step, "driven", driven)
    return asked


def found_in(out: Path, name: str) -> list[dict[str, object]]:
    found: list[dict[str, object]] = json.loads((out / f"marketplace-{name}.json").read_text("utf-8"))["found"]
    return found


def test_settings_take_turns_each_in_its_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = pretend(monkeypatch, lambda _: run_of(100, checkout=10))
    assert main(["marketplace", "logging", "--runs", "2", "--out", str(tmp_path)]) == OK
    off: dict[str, str] = {"MARKETPLACE_ARCHIVE": "off"}
    assert [environment for _, _, environment in asked] == [off, {}, {}, off]
    assert {workload for workload, _, _ in asked} == {"marketplace"}
    assert [each["rate"] for each in found_in(tmp_path, "logging")] == [[100, 100], [100, 100]]
    assert (tmp_path / "marketplace-logging.svg").exists()
    assert "archives" in (tmp_path / "marketplace-logging.txt").read_text("utf-8")


def test_numbers_are_those_that_are_asked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = pretend(monkeypatch, lambda _: run_of(100, checkout=10))
    words = ["--numbers", "1.2,0", "--runs", "1", "--out", str(tmp_path)]
    assert main(["marketplace", "vmodb-skew", *words]) == OK
    assert [words[-2:] for _, words, _ in asked] == [["--seller-zipf", number] for number in ("0", "0", "1.2", "1.2")]
    assert {environment["MARKETPLACE_PAYMENT"] for _, _, environment in asked} == {"together"}, "as in the paper"
    assert ["--without" in words for _, words, _ in asked] == [True, False, True, False]
    assert {path.name for path in tmp_path.glob("*.svg")} == {
        "marketplace-vmodb-skew.svg",
        "marketplace-vmodb-skew-kinds.svg",
    }


def test_a_run_that_fails_ends_the_experiment_with_what_there_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def made(words: Sequence[str]) -> Result:
        if words[-1] == "8":
            raise StepFailed("the audit found: ATOM")
        return run_of(100, checkout=10)

    pretend(monkeypatch, made)
    assert main(["marketplace", "concurrency", "--out", str(tmp_path)]) == FAILED
    assert len(found_in(tmp_path, "concurrency")) == 2
    report = json.loads((tmp_path / "marketplace-concurrency.json").read_text("utf-8"))
    assert report["failed"] == "the audit found: ATOM"


def test_a_window_without_an_answer_is_no_figure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pretend(monkeypatch, lambda _: run_of(0))
    assert main(["marketplace", "logging", "--out", str(tmp_path)]) == FAILED
    assert "use a longer --window" in capsys.readouterr().err
    assert found_in(tmp_path, "logging") == []


def crashing(words: Sequence[str]) -> Result:
    if "--kill-worker" not in words:
        return run_of(50, checkout=10)
    marks = [Mark(at_s=1.0, what=KILLED)]
    return msgspec.structs.replace(
        run_of(20, checkout=10), death=DEATH, timeline=line([NORMAL_US] * 20), marks=marks, errors={"aborted:X": 3}
    )


def test_a_crash_is_at_a_share_of_what_the_cluster_manages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = pretend(monkeypatch, crashing)
    words = ["--runs", "2", "--over-time", "16", "--out", str(tmp_path)]
    assert main(["marketplace", "crash", *words]) == OK
    managed, *deaths = (words for _, words, _ in asked)
    assert "--concurrency" in managed
    assert len(deaths) == 2
    for each in deaths:
        at = dict(zip(each[::2], each[1::2], strict=True))
        assert (at["--on"], at["--rate"], at["--duration"], at["--kill-worker"]) == ("cluster", "20", "16", "4")
        assert "--concurrency" not in at
    assert [each["failed"] for each in found_in(tmp_path, "crash")] == [3, 3]
    assert (tmp_path / "marketplace-crash.txt").read_text("utf-8").strip().endswith("no reply for 0.7 s (0.7-0.7)")
    assert KILLED in (tmp_path / "marketplace-crash.svg").read_text("utf-8")


def test_a_rate_of_ones_own_needs_no_run_before(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = pretend(monkeypatch, crashing)
    assert main(["marketplace", "crash", "--rate", "5", "--runs", "1", "--out", str(tmp_path)]) == OK
    assert ["5" in words for _, words, _ in asked] == [True]


def test_a_run_without_a_death_is_no_crash(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pretend(monkeypatch, lambda _: run_of(50, checkout=10))
    assert main(["marketplace", "crash", "--out", str(tmp_path)]) == FAILED


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["scaling", "--on", "embedded"], "needs the workers of a cluster"),
        (["crash", "--on", "embedded"], "needs the workers of a cluster"),
        (["crash", "--workers", "1"], "--workers"),
        (["crash", "--over-time", "1"], "--over-time"),
        (["logging", "--workers", "0"], "--workers"),
        (["logging", "--concurrency", "0"], "--concurrency"),
        (["logging", "--numbers", "1,2"], "goes through no numbers"),
        (["skew", "--numbers", "4"], "--numbers"),
        (["crash", "--numbers", "4"], "goes through no numbers"),
    ],
)
def test_wrong_options_are_told_before_anything_is_started(
    words: list[str], said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = pretend(monkeypatch, crashing)
    assert main(["marketplace", *words, "--out", str(tmp_path)]) == USAGE
    assert said in capsys.readouterr().err
    assert not asked


SHORT = ["--runs", "1", "--repeats", "0", "--window", "1.5", "--warm-up", "0.5", "--concurrency", "4"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "words", "charts"),
    [
        ("replication", [], ["replication"]),
        ("durability", [], ["durability"]),
        ("vmodb-skew", ["--numbers", "1.2"], ["vmodb-skew-kinds"]),
        ("epochs", ["--numbers", "1,8"], ["epochs"]),
    ],
)
def test_an_experiment_in_miniature(name: str, words: list[str], charts: list[str], tmp_path: Path) -> None:
    small = ["--more", "--size 0.005 --concurrency 4", "--out", str(tmp_path)]
    assert main(["marketplace", name, *SHORT, *words, *small]) == OK
    report = json.loads((tmp_path / f"marketplace-{name}.json").read_text("utf-8"))
    assert all(each["rate"][0] > 0 for each in report["found"])
    results = [msgspec.convert(step["result"], Result) for step in report["steps"]]
    assert all(each.audit is not None and each.audit.violations == [] for each in results)
    assert all("<svg" in (tmp_path / f"marketplace-{chart}.svg").read_text("utf-8") for chart in charts)
    if name == "replication":
        assert [each.settings["application"]["replication"] for each in results] == [
            "eventual",
            "object",
            "seller",
            "together",
        ]


@pytest.mark.slow
def test_tpcc_in_miniature(tmp_path: Path) -> None:
    small = ["--numbers", "1", "--more", "--items 1000 --customers 30", "--out", str(tmp_path)]
    assert main(["marketplace", "vmodb-tpcc-mix", *SHORT, *small]) == OK
    kinds = [{*map(str, each["kinds"])} for each in found_in(tmp_path, "vmodb-tpcc-mix")]  # type: ignore[call-overload]
    assert kinds[0] == {"new-order"}
    assert kinds[1] > {"new-order", "payment"}


@pytest.mark.slow
def test_a_crash_in_miniature(tmp_path: Path) -> None:
    small = ["--rate", "10", "--over-time", "8", "--more", "--size 0.005", "--out", str(tmp_path)]
    assert main(["marketplace", "crash", *SHORT, *small]) == OK
    (found,) = found_in(tmp_path, "crash")
    assert found["timeline"]
    assert "worker killed" in (tmp_path / "marketplace-crash.svg").read_text("utf-8")
