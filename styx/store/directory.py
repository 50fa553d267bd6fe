"""The store in a local directory: one file for each object.

An object is written under a temporary name and synced; then the file is renamed or linked, and its directory synced. So
an object is there whole or not at all, also after a power cut. Names cannot lead out of the directory.
"""

from __future__ import annotations

import builtins
import fcntl
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from threading import Lock
from typing import BinaryIO, Final
from uuid import uuid4

from styx.errors import ConfigurationError
from styx.process.fsync import fsync_directory, fsync_file, make_directory
from styx.store.base import NotFound, can_begin_a_name, check_name
from styx.store.stores import StoreUrl

ATTEMPTS_MAX: Final = 10
"""How often a temporary file or a folder is created again when another process removes it just then."""

# Names of objects have no part that starts with a dot, so this can be none of them.
_UNFINISHED: Final = ".unfinished"


class DirectoryStore:
    """A `Store` in the directory `path`, created if it is missing. Processes of one machine may share it. The
    constructor removes unfinished files of writers that died.

    `to_read`: the store can only be read, and nothing is created or removed. Raises `OSError` for a directory that
    cannot be created or written, or, with `to_read`, found.
    """

    def __init__(self, path: str | os.PathLike[str], to_read: bool = False) -> None:
        self._root = Path(path).absolute()
        self._unfinished = self._root / _UNFINISHED
        if to_read:
            os.scandir(self._root).close()
        else:
            make_directory(self._unfinished)
            for leftover in self._unfinished.iterdir():
                _remove_unless_in_use(leftover)
        # Held while directories come and go, so that none is removed under a put.
        self._lock = Lock()
        # Directories whose entries up to the root are known to be on the disk.
        self._synced = {self._root}

    def put(self, name: str, data: bytes) -> None:
        check_name(name)
        with self._written(data) as temporary, self._lock:
            try:
                self._publish(temporary, self._root / name, os.replace)
            except (NotADirectoryError, IsADirectoryError, FileExistsError):
                raise _continues_another(name) from None

    def put_new(self, name: str, data: bytes) -> bool:
        check_name(name)
        target = self._root / name
        with self._written(data) as temporary, self._lock:
            try:
                self._publish(temporary, target, _link_unless_there)
                return self.get(name) == data
            except NotFound:
                # There was one; another process has deleted it by now.
                return False
            except (NotADirectoryError, IsADirectoryError, FileExistsError):
                raise _continues_another(name) from None

    def get(self, name: str) -> bytes:
        check_name(name)
        try:
            return (self._root / name).read_bytes()
        except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
            raise NotFound(name, str(self._root)) from None

    def get_range(self, name: str, start: int, size: int) -> bytes:
        check_name(name)
        try:
            with (self._root / name).open("rb") as file:
                file.seek(start)
                return file.read(size)
        except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
            raise NotFound(name, str(self._root)) from None

    def list(self, prefix: str) -> builtins.list[str]:
        folder = self._root.joinpath(*prefix.split("/")[:-1]) if can_begin_a_name(prefix) else None
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

    @contextmanager
    def _written(self, data: bytes) -> Iterator[Path]:
        path, file = _lasting_file(self._unfinished)
        try:
            with file:
                file.write(data)
                file.flush()
                fsync_file(file.fileno())
                yield path
        finally:
            path.unlink(missing_ok=True)

    def _publish(self, temporary: Path, target: Path, move: Callable[[Path, Path], None]) -> None:
        for attempt in range(ATTEMPTS_MAX):
            try:
                self._make_folders(target.parent)
                move(temporary, target)
                fsync_directory(target.parent)
                return
            except FileNotFoundError:
                if attempt == ATTEMPTS_MAX - 1:
                    raise
                self._synced = {self._root}

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


def open_at(url: StoreUrl, options: Mapping[str, str], to_read: bool) -> DirectoryStore:
    """The store at `file:///PATH`; it has no options. Raises `ConfigurationError` and `OSError`."""
    if url.host not in ("", "localhost") or not url.path.startswith("/") or "\0" in url.path:
        raise ConfigurationError(
            f"{url.text!r} names no directory of this machine: it has three slashes, as in file:///data"
        )
    try:
        return DirectoryStore(url.path, to_read)
    except (FileNotFoundError, NotADirectoryError):
        raise ConfigurationError(f"{url.text!r} names no directory that there is") from None


def _lasting_file(folder: Path) -> tuple[Path, BinaryIO]:
    """A new file, locked: `_remove_unless_in_use` does not remove it while it is open."""
    for _ in range(ATTEMPTS_MAX):
        path = folder / uuid4().hex
        file = path.open("xb")
        fcntl.flock(file, fcntl.LOCK_EX)
        # A store that was opened in between may have taken it for a leftover.
        if os.fstat(file.fileno()).st_nlink:
            return path, file
        file.close()
    raise BlockingIOError(f"other processes keep removing what is written to {folder}")


def _remove_unless_in_use(path: Path) -> None:
    try:
        with path.open("rb") as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            path.unlink()
    except (BlockingIOError, FileNotFoundError):
        return


def _link_unless_there(temporary: Path, target: Path) -> None:
    try:
        os.link(temporary, target)
    except FileExistsError:
        if target.is_dir():
            raise


def _continues_another(name: str) -> ValueError:
    return ValueError(f"{name!r} cannot be stored beside an object whose name it continues, or that continues it")
