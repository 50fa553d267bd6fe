"""Options of the whole test suite, and what all property tests share."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator

import pytest
from hypothesis import settings

from benchmarks.driver.one_at_a_time import HELD_VARIABLE
from styx.cli import facts_client
from styx.testing.patience import PATIENCE_SECONDS
from styx.watchdog import ending

# The fixtures `kafka` and `minio`, and how tests share the processors.
pytest_plugins = ["tests.real_services", "tests.parallel"]

# No deadline: a test's verdict must not depend on how busy the machine is.
settings.register_profile("styx", deadline=None)
settings.load_profile("styx")

# A shell that runs the suite in the background has it ignore SIGINT, and every process that a test starts as well.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


# Tests measure nothing, so they need not wait for a load test that runs on this machine.
os.environ[HELD_VARIABLE] = "tests"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--rewrite", action="store_true", help="write the transcripts anew; review the difference")


@pytest.fixture(autouse=True)
def _asks_patiently(monkeypatch: pytest.MonkeyPatch) -> None:
    """Processes under test may be slow to say how they are; whoever asks for people does not wait so long."""
    monkeypatch.setattr(facts_client, "SECONDS_MAX", PATIENCE_SECONDS)


@pytest.fixture(autouse=True)
def _is_not_told_to_end() -> Iterator[None]:
    """A test of a server sends its own process a signal, which the watchdog of a later test's engine would obey."""
    yield
    ending._told.clear()
