"""Files that are read again when they have changed: keys, rules, certificates. The server polls them.

While a file is missing or damaged, its last content stays in use, and the log says so once for each state of the file.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from styx.errors import ConfigurationError

POLL_SECONDS: Final = 1.0
"""The time between two checks of the files."""

_Stamp = tuple[int, int, int, int] | None

_log = logging.getLogger("styx.gateway")


class WatchedFiles:
    """Calls `load()` now, and in `poll` whenever a file has changed. `load` raises `ConfigurationError` for content
    that it refuses. Only the error of the first load is raised here; later errors are logged.
    """

    def __init__(self, paths: Sequence[Path], load: Callable[[], None]) -> None:
        self._paths = tuple(paths)
        self._load = load
        self._stamps = self._look()
        self._failed = ""
        load()

    def poll(self) -> None:
        """Loads the files if one has changed. Loads them again if the last load failed, because the cause may lie
        elsewhere.
        """
        stamps = self._look()
        changed = stamps != self._stamps
        if not changed and not self._failed:
            return
        self._stamps = stamps
        names = ", ".join(map(str, self._paths))
        try:
            self._load()
        except ConfigurationError as error:
            if changed or str(error) != self._failed:
                _log.error("%s changed and is not taken, what was read before stays in use: %s", names, error)
            self._failed = str(error)
        else:
            self._failed = ""
            _log.warning("%s changed and has been read again", names)

    def _look(self) -> list[_Stamp]:
        return [_stamp(path) for path in self._paths]


def _stamp(path: Path) -> _Stamp:
    try:
        found = path.stat()
    except OSError:
        return None
    # `st_ctime_ns` also changes with owner and mode, which may make a file readable.
    return found.st_mtime_ns, found.st_size, found.st_ino, found.st_ctime_ns
