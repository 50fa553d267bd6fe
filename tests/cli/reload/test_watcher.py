"""The watcher waits until a Python file has changed."""

import asyncio
from pathlib import Path

import pytest

from styx.cli.reload.watcher import until_changed
from styx.cli.source_files import stamps_in


@pytest.mark.anyio
async def test_it_waits_for_a_python_file(tmp_path: Path) -> None:
    file = tmp_path / "bank.py"
    file.write_text("a")
    directories = [str(tmp_path), str(tmp_path / "nowhere")]
    waiting = asyncio.create_task(until_changed(directories, stamps_in(directories)))
    (tmp_path / "data.txt").write_text("a")
    file.write_text("ab")
    assert await waiting == [str(file)]


@pytest.mark.anyio
async def test_what_changed_before_it_waited(tmp_path: Path) -> None:
    file = tmp_path / "bank.py"
    file.write_text("a")
    before = stamps_in([str(tmp_path)])
    file.write_text("ab")
    assert await until_changed([str(tmp_path)], before) == [str(file)]
