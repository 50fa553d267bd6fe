"""A newcomer's first hour, on a clone of this checkout: `scripts/first-hour`."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.real_services import RealKafka

pytestmark = [pytest.mark.slow, pytest.mark.timeout(3600)]
ROOT = Path(__file__).parents[2]


def test_it_goes_as_the_documents_say(kafka: RealKafka) -> None:
    command = [str(ROOT / "scripts" / "first-hour"), "--kafka", kafka.bootstrap]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert len(done.stdout.splitlines()) == 10, done.stdout
