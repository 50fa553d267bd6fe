"""The file of API keys: read and replaced as a whole, so that a gateway never finds a half-written file."""

from __future__ import annotations

import fcntl
import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from styx.errors import ConfigurationError
from styx.gateway.auth import api_keys
from styx.gateway.auth.api_keys import ApiKey, KeyRing


def read(path: Path) -> KeyRing:
    """The keys; raises `ConfigurationError`."""
    try:
        return api_keys.parse(path.read_bytes())
    except OSError as error:
        raise ConfigurationError(f"the file of API keys {path} cannot be read: {error.strerror}") from None
    except ConfigurationError as error:
        raise ConfigurationError(f"{path}: {error}") from None


def change(path: Path, changed: Callable[[list[ApiKey]], list[ApiKey]]) -> None:
    """Replaces the keys by `changed(keys)`; a file that is not there has none. Two commands at once take turns.

    Only its owner reads a new file; an old one's mode and owner stay. Raises `ConfigurationError`.
    """
    try:
        with _turn(path):
            old = read(path).keys if path.exists() else []
            data = api_keys.encode(changed(old))
            api_keys.parse(data)  # nothing is written that a gateway would refuse
            _replace(path, data)
    except OSError as error:
        raise ConfigurationError(f"the file of API keys {path} cannot be written: {error.strerror}") from None


@contextmanager
def _turn(path: Path) -> Iterator[None]:
    lock = os.open(path.parent, os.O_RDONLY)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
    finally:
        os.close(lock)


def _replace(path: Path, data: bytes) -> None:
    old = path.stat() if path.exists() else None
    number, name = tempfile.mkstemp(dir=path.parent, prefix=path.name + ".")
    try:
        with os.fdopen(number, "wb") as file:
            file.write(data)
            file.flush()
            if old is not None:
                _give_to(file.fileno(), old)
            os.fchmod(file.fileno(), 0o600 if old is None else old.st_mode & 0o777)
            os.fsync(file.fileno())
        os.replace(name, path)
    except BaseException:
        os.unlink(name)
        raise


def _give_to(number: int, old: os.stat_result) -> None:
    """The new file's owner is the old one's: a gateway that runs as that user must go on reading it."""
    new = os.fstat(number)
    if (new.st_uid, new.st_gid) == (old.st_uid, old.st_gid):
        return
    try:
        os.fchown(number, old.st_uid, old.st_gid)
    except OSError:
        raise ConfigurationError(
            f"the file of API keys belongs to user {old.st_uid}, group {old.st_gid}, and a new one cannot be given to "
            "them: nothing was changed. Run this command as that user"
        ) from None
