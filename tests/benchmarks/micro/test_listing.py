"""The measurement of listings runs, on few entities."""

from __future__ import annotations

import asyncio

import pytest

from benchmarks.micro.listing import longest_step, main


def test_it_measures_pages(capsys: pytest.CaptureFixture[str]) -> None:
    asyncio.run(main(2_000))
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("2,000 entities on 4 slots")
    assert [line.split(":")[0].strip() for line in lines[2:]] == ["first page", "page of 100", "page of 1,000"]


def test_the_keys_of_a_large_slot_are_put_in_order_by_many_questions() -> None:
    assert longest_step(20_000)[2] == 3
