"""The command from end to end: a worker is killed under TPC-C while the audit follows; and what is refused."""

from __future__ import annotations

import re

import pytest

from benchmarks.audited.__main__ import main


@pytest.mark.slow
def test_a_worker_is_killed_under_tpcc(capsys: pytest.CaptureFixture[str]) -> None:
    words = "--minutes 0.4 --every 24 --loads tpcc --faults worker --rate 15 --snapshot-interval 3"
    status, shown = main(words.split()), capsys.readouterr().out
    assert status == 0, shown
    assert "faults    1: 1 worker" in shown
    [found] = re.findall(r"audit +intervals (\d+) agreed, with (\d+) epochs and (\d+) replies; .* 0 wrong", shown)
    assert all(int(number) > 0 for number in found), shown
    assert "verdict   passed" in shown


@pytest.mark.parametrize(
    ("words", "why"),
    [
        ("--loads bank,moon", "there is no load 'moon'; there are programs,bank,tpcc"),
        ("--faults moon", "there is no fault 'moon'; there are worker,"),
        ("--minutes 0", "--minutes is from 0.1"),
        ("--rate nan", "--rate is from 1"),
        ("--workers 0", "--workers is from 1 to 16"),
    ],
)
def test_options_that_cannot_be_are_refused(words: str, why: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(words.split())
    assert ended.value.code == 2
    assert why in capsys.readouterr().err
