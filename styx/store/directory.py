"""The object store in a local directory: one file per object.

An object is written under a temporary name, synced, renamed, and its directory synced: it is there whole or
not at all, whatever happens. Never shows a half-written object, and never reaches outside its directory.
"""

from __future__ import annotations

import builtins
import os
from itertools import count
from pathlib import Path
from threading import Lock
from typing import Final

from styx.fsync import fsync_directory, fsync_file, make_directory
from styx.store.base import NotFound, check_name

# Names of objects have no part that starts with a dot, so this can be none of them.
_UNFINISHED: Final = ".unfinished"


class DirectoryStore:
    """A `Store` in the directory `path`, created if it is missing. One object of this class per directory at
    a time: opening it removes what an earlier one left unfinished.

    Raises `OSError` when the directory cannot be created or written.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._root = Path(path).absolute()
        self._unfinished = self._root / _UNFINISHED
        make_directory(self._unfinished)
        for leftover in self._unfinished.iterdir():
            leftover.unlink()
        self._numbers = count()
        # Held while directories come and go, so that none is removed under a put.
        self._lock = Lock()
        # Directories whose entries up to the root are known to be on the disk.
        self._synced = {self._root}

    def put(self, name: str, data: bytes) -> None:
        check_name(name)
        temporary = self._unfinished / str(next(self._numbers))
        try:
            _write(temporary, data)
            with self._lock:
                self._publish(temporary, self._root / name)
        except (NotADirectoryError, IsADirectoryError, FileExistsError):
            raise ValueError(
                f"{name!r} cannot be stored beside an object whose name it continues, or that continues it"
            ) from None
        finally:
            temporary.unlink(missing_ok=True)

    def get(self, name: str) -> bytes:
        check_name(name)
        try:
            return (self._root / name).read_bytes()
        except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
            raise NotFound(name, str(self._root)) from None

    def list(self, prefix: str) -> builtins.list[str]:
        folder = self._root.joinpath(*prefix.split("/")[:-1]) if _is_inside(prefix) else None
        if folder is None:
            return []
        names = []
        for directory, subdirectories, files in os.walk(folder):
            subdirectories[:] = [each for each in subdirectories if each != _UNFINISHED]
            names += [(Path(directory) / file).relative_to(self._root).as_posix() for file in files]
        return sorted(name for name in names if name.startswith(prefix))

    def delete(self, name: str) -> None:
        check_name(name)
        with self._lock:
            try:
                (self._root / name).unlink()
            except (FileNotFoundError, NotADirectoryError, IsADirectoryError, PermissionError) as error:
                # macOS reports a directory as a lack of permission.
                if isinstance(error, PermissionError) and not (self._root / name).is_dir():
                    raise
                return
            self._remove_empty((self._root / name).parent)

    def _publish(self, temporary: Path, target: Path) -> None:
        self._make_folders(target.parent)
        os.replace(temporary, target)
        fsync_directory(target.parent)

    def _make_folders(self, folder: Path) -> None:
        if folder in self._synced:
            return
        self._make_folders(folder.parent)
        folder.mkdir(exist_ok=True)
        # Also if it existed: its maker may have died before this.
        fsync_directory(folder.parent)
        self._synced.add(folder)

    def _remove_empty(self, folder: Path) -> None:
        while folder != self._root:
            try:
                folder.rmdir()
            except OSError:
                return
            self._synced.discard(folder)
            folder = folder.parent


def _write(path: Path, data: bytes) -> None:
    with path.open("wb") as file:
        file.write(data)
        file.flush()
        fsync_file(file.fileno())


def _is_inside(prefix: str) -> bool:
    """Whether any name can start with `prefix`: `/etc` or `../x` must not be walked."""
    return "\0" not in prefix and all(part and not part.startswith(".") for part in prefix.split("/")[:-1])
