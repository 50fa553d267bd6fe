"""The command from end to end on real processes: a worker and the provider are struck under a load that goes both ways,
the state is sampled, and the audit is green.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys

import pytest

from tests.docs.snippets import ROOT

pytestmark = pytest.mark.slow


def run(words: str) -> tuple[int, str, str]:
    """Exit status, output, progress. A process of its own, because the application reads its environment once."""
    ended = subprocess.run(
        [sys.executable, "-m", "benchmarks.marketplace.faults", *words.split()],
        cwd=ROOT,
        env={name: value for name, value in os.environ.items() if not name.startswith("MARKETPLACE_")},
        check=False,
        capture_output=True,
        text=True,
    )
    return ended.returncode, ended.stdout, ended.stderr


def test_a_worker_and_the_provider_are_struck() -> None:
    # The seed draws the provider first, whose fault never lasts longer than a period.
    status, shown, told = run(
        "--minutes 0.7 --every 20 --kinds worker,provider --rate 8 --size 0.01 --slots 4 --clients 1 --sample 0.2 "
        "--declined 10 --unreachable 5 --seed 38"
    )
    assert status == 0, shown + told
    assert re.search(r"^worker +1 times \(1 worker\): healed after", shown, re.MULTILINE), shown
    assert re.search(r"^provider +1 times \(1 provider-down\): healed after", shown, re.MULTILINE), shown
    samples = re.findall(r"^sample +epoch \d+, \d+ entries: (\d+) violations", shown, re.MULTILINE)
    assert samples, shown
    assert {*samples} == {"0"}
    assert re.search(r"^audit +25 criteria on [1-9]\d+ orders", shown, re.MULTILINE), shown
    assert "memory       is judged in runs of 10 minutes and more" in shown
    assert "verdict      passed" in shown


@pytest.mark.parametrize(
    ("words", "why"),
    [
        ("--kinds worker,moon", "there is no kind 'moon'; there are worker, coordinator"),
        ("--provider http://127.0.0.1:1", "--provider is `own` here"),
        ("--minutes 0", "--minutes is at least 0.1"),
        ("--size 0", "the size factor is from"),
    ],
)
def test_options_that_cannot_be_are_refused(words: str, why: str) -> None:
    status, _, told = run(words)
    assert status == 2
    assert why in told
