"""Files that are read again: when they change, and as long as what they hold is not taken."""

from pathlib import Path

import pytest

from styx import ConfigurationError
from styx.gateway.watched_files import WatchedFiles


def test_what_failed_is_tried_again(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """What hindered it may end without a trace in the file: a folder's mode, a full table of open files."""
    path, why, loads = tmp_path / "keys", "", 0
    path.write_text("a")

    def load() -> None:
        nonlocal loads
        loads += 1
        if why:
            raise ConfigurationError(why)

    watched = WatchedFiles([path], load)
    watched.poll()
    assert loads == 1
    path.write_text("ab")
    why = "too many open files"
    for _ in range(3):
        watched.poll()
    assert (loads, caplog.text.count("too many open files")) == (4, 1), "told once"
    why = ""
    watched.poll()
    watched.poll()
    assert (loads, caplog.text.count("has been read again")) == (5, 1)


def test_another_mode_is_a_change(tmp_path: Path) -> None:
    path, loads = tmp_path / "keys", []
    path.write_text("a")
    watched = WatchedFiles([path], lambda: loads.append(1))
    path.chmod(0o640)
    watched.poll()
    assert len(loads) == 2
