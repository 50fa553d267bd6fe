"""A run of a workload's command as a process of its own: its result, and what is told if it does not come to one."""

from __future__ import annotations

import asyncio

import psutil  # type: ignore[import-untyped]
import pytest

from benchmarks.experiments.bench import StepFailed
from benchmarks.experiments.marketplace.driven import driven
from styx.errors import ConfigurationError

pytestmark = pytest.mark.slow

SHORT = ["--keys", "50", "--rate", "50", "--duration", "0.5", "--warm-up", "0.1"]


def test_the_result_is_that_of_an_audited_run_in_its_environment() -> None:
    made = asyncio.run(driven("marketplace", ["--size", "0.002", *SHORT[2:]], {"MARKETPLACE_PAYMENT": "together"}))
    assert made.settings["application"]["payment"] == "together"
    assert made.audit is not None


def test_words_and_variables_that_the_command_refuses_are_the_users_mistake() -> None:
    with pytest.raises(ConfigurationError, match="--rate"):
        asyncio.run(driven("ycsbt", ["--rate", "0"], {}))
    with pytest.raises(ConfigurationError, match="MARKETPLACE_ARCHIVE is on or off"):
        asyncio.run(driven("marketplace", [], {"MARKETPLACE_ARCHIVE": "maybe"}))


def test_an_audit_that_fails_fails_the_step_with_what_it_found() -> None:
    with pytest.raises(StepFailed, match=r"(?s)ycsbt run .*VIOLATION"):
        asyncio.run(driven("ycsbt", [*SHORT, "--lose", "account.credit=0.5"], {}))


def test_a_run_ends_with_the_one_that_asked_for_it() -> None:
    async def cut_short() -> None:
        asking = asyncio.create_task(driven("ycsbt", ["--duration", "600"], {}))
        await asyncio.sleep(1.5)
        (child,) = runs()
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking
        assert not child.is_running()

    asyncio.run(cut_short())
    assert not runs()


def runs() -> list[psutil.Process]:
    """Those of this process that have not ended."""
    return [each for each in psutil.Process().children() if "benchmarks.ycsbt" in each.cmdline()]
