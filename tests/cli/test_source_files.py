"""The Python files of an app that have changed."""

from pathlib import Path

from styx.cli.source_files import changed, stamps_in


def test_new_gone_and_different(tmp_path: Path) -> None:
    for name in ("same.py", "edited.py", "gone.py", "data.txt"):
        (tmp_path / name).write_text("a")
    (tmp_path / "below").mkdir()
    (tmp_path / "below" / "x.py").touch()
    before = stamps_in([str(tmp_path), str(tmp_path / "nowhere")])
    (tmp_path / "edited.py").write_text("ab")
    (tmp_path / "gone.py").unlink()
    (tmp_path / "new.py").touch()
    (tmp_path / "data.txt").write_text("ab")
    (tmp_path / "below" / "x.py").write_text("ab")
    found = changed(before, stamps_in([str(tmp_path)]))
    assert [Path(each).name for each in found] == ["edited.py", "gone.py", "new.py"]
