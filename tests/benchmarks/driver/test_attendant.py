"""Attendants: what one has seen is one more witness, and its failure is the command's."""

from __future__ import annotations

import asyncio
from contextlib import nullcontext
from pathlib import Path
from typing import Any, cast

import pytest

from benchmarks.driver.attendant import attended
from benchmarks.driver.command import OK, main
from benchmarks.driver.result import Result, read
from benchmarks.driver.workload import Audit
from styx.client.base import Client
from tests.benchmarks.driver import counting
from tests.benchmarks.driver.counting import Counting

CLIENT = cast("Client", object())


class Seeing:
    """Sees `wanted` things, one in each turn of the loop; `fails` instead of the second one."""

    def __init__(self, wanted: int = 3, fails: Exception | None = None) -> None:
        self.seen = 0
        self.cancelled = False
        self._wanted = wanted
        self._fails = fails
        self._all = asyncio.Event()

    async def watch(self, client: Client) -> None:
        try:
            while True:
                await asyncio.sleep(0)
                if self.seen < self._wanted:
                    self.seen += 1
                else:
                    self._all.set()
                if self.seen == 2 and self._fails is not None:
                    raise self._fails
        finally:
            self.cancelled = True

    async def settle(self, witnesses: list[Any]) -> None:
        await self._all.wait()

    def witness(self) -> Any:
        return {"committed": 0, "seen": self.seen}


class Attended(Counting):
    def __init__(self, attendant: Seeing) -> None:
        super().__init__()
        self._attendant = attendant
        self.audited: list[Any] = []

    def attendant(self) -> Seeing:
        return self._attendant

    def notes(self, result: Result, witnesses: list[Any]) -> list[str]:
        return [f"seen         {witnesses[-1]['seen']}"]

    async def audit(self, client: Client, witnesses: list[Any]) -> Audit:
        self.audited = witnesses
        return await super().audit(client, witnesses)


async def whole(workload: Counting) -> list[Any]:
    async with attended(workload, nullcontext(CLIENT)) as watching:
        return await watching.whole([{"committed": 4}])


def test_what_it_has_seen_when_all_has_settled_is_the_last_witness() -> None:
    seeing = Seeing()
    assert asyncio.run(whole(Attended(seeing))) == [{"committed": 4}, {"committed": 0, "seen": 3}]
    assert seeing.cancelled


def test_a_workload_without_one_has_the_witnesses_of_its_clients() -> None:
    assert asyncio.run(whole(Counting())) == [{"committed": 4}]


def test_its_failure_is_raised_rather_than_waited_for() -> None:
    with pytest.raises(LookupError, match="gone"):
        asyncio.run(whole(Attended(Seeing(fails=LookupError("gone")))))


def test_a_run_has_its_notes_and_its_witness(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out, workload = tmp_path / "result.json", Attended(Seeing())
    words = ["run", "--rate", "100", "--duration", "0.2", "--warm-up", "0", "--quiet", "--out", str(out)]
    assert main("counting", counting.add_options, lambda _: workload, words) == OK
    result = read(out)
    assert isinstance(result, Result)
    assert result.notes == ["seen         3"]
    assert "seen         3" in capsys.readouterr().out
    assert workload.audited[-1]["seen"] == 3
