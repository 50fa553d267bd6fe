"""The bill: what two kinds of processes have counted is one line, and a table shows it."""

from __future__ import annotations

import subprocess
import sys

import pytest

from benchmarks.bill.__main__ import HTTP, KAFKA, joined, table
from benchmarks.bill.measure import Counts, Line, Meter, Window
from tests.docs.snippets import ROOT

ROLES = ("worker", "coordinator", "broker", "gateway", "client")


def line(front: str, counts: dict[str, float]) -> Line:
    return Line(1, front, 3, 1.0, {role: dict(counts) for role in ROLES})


def test_all_requests_are_the_brokers() -> None:
    counted = line(KAFKA, {"Python calls": 10.0, "broker requests": 2.0, "fetches": 1.0})
    del counted.counts["broker"]
    (whole,) = joined([line(KAFKA, {"µs": 5.0})], [counted])
    assert whole.counts["broker"] == {"µs": 5.0, "broker requests": 8.0, "fetches": 4.0}
    assert whole.counts["worker"] == {"µs": 5.0, "Python calls": 10.0, "broker requests": 2.0, "fetches": 1.0}


def test_the_table_has_a_line_for_each_process_that_takes_part() -> None:
    lines = table([line(KAFKA, {"µs": 1234.5}), line(HTTP, {"µs": 2.0})]).splitlines()[2:]
    assert [each.split()[4] for each in lines] == [role for role in ROLES if role != "gateway"] + list(ROLES)
    assert "1,234.5" in lines[0]


COUNTED = """
import asyncio

from benchmarks.bill.counted_process import CallCounter

async def turns():
    for _ in range(3):
        await asyncio.sleep(0)

counter = CallCounter()
counter.start()
asyncio.run(turns())
counter.stop()
print(*[number for name, number in counter.calls().items() if name.endswith(":turns")])
"""


def test_the_calls_of_a_coroutine_count_whenever_it_goes_on() -> None:
    # In a process of its own, as it is used: a profile function is for the whole of a thread.
    counted = subprocess.run([sys.executable, "-c", COUNTED], cwd=ROOT, capture_output=True, text=True, check=True)
    assert counted.stdout.split() == ["4"]


@pytest.mark.anyio
async def test_what_happens_without_load_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("benchmarks.bill.measure.IDLE_SECONDS", 0.0)

    async def counted(load: Window) -> Counts:
        await load()
        return {"worker": {"µs": 10.0}}

    class Load:
        async def run(self, size: int, number: int) -> int:
            assert (size, number) == (3, 4)
            return 2

    meter = Meter(counted)
    counts, epochs = await meter.of(Load(), 3, 4)  # type: ignore[arg-type]
    assert (counts, epochs) == ({"worker": {"µs": 5.0}}, 0.5)
    await meter.idle()
    counts, _ = await meter.of(Load(), 3, 4)  # type: ignore[arg-type]
    assert 0.0 <= counts["worker"]["µs"] <= 5.0
