"""Which Python files have changed."""

import asyncio
from pathlib import Path

import pytest

from styx.cli.reload.watching import changed, stamps, until_changed


def test_new_gone_and_different(tmp_path: Path) -> None:
    for name in ("same.py", "edited.py", "gone.py", "data.txt"):
        (tmp_path / name).write_text("a")
    (tmp_path / "below").mkdir()
    (tmp_path / "below" / "x.py").touch()
    before = stamps([str(tmp_path), str(tmp_path / "nowhere")])
    (tmp_path / "edited.py").write_text("ab")
    (tmp_path / "gone.py").unlink()
    (tmp_path / "new.py").touch()
    (tmp_path / "data.txt").write_text("ab")
    (tmp_path / "below" / "x.py").write_text("ab")
    found = changed(before, stamps([str(tmp_path)]))
    assert [Path(each).name for each in found] == ["edited.py", "gone.py", "new.py"]


@pytest.mark.anyio
async def test_it_waits_for_a_python_file(tmp_path: Path) -> None:
    file = tmp_path / "bank.py"
    file.write_text("a")
    directories = [str(tmp_path), str(tmp_path / "nowhere")]
    waiting = asyncio.create_task(until_changed(directories, stamps(directories)))
    (tmp_path / "data.txt").write_text("a")
    file.write_text("ab")
    assert await waiting == [str(file)]


@pytest.mark.anyio
async def test_what_changed_before_it_waited(tmp_path: Path) -> None:
    file = tmp_path / "bank.py"
    file.write_text("a")
    before = stamps([str(tmp_path)])
    file.write_text("ab")
    assert await until_changed([str(tmp_path)], before) == [str(file)]
