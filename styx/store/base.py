"""The interface of an object store: named blobs, each put whole or not at all (§7).

It keeps snapshots, manifests, the versions of the app and the deployment's claim. A store never interprets an object
and keeps no checksum: the writer of an object puts a checksum inside, and its reader raises `StoreCorrupt` when it does
not match.
"""

from __future__ import annotations

from typing import Final, Protocol

from styx.errors import ConfigurationError, EngineFailed, StyxError

NAME_BYTES_MAX: Final = 1024
"""Length of a name in UTF-8; the same as S3's."""
COMPONENT_BYTES_MAX: Final = 255
"""Length of one part of a name between slashes; most file systems allow no more."""


class NotFound(StyxError):
    """The store has no object of this name."""

    def __init__(self, name: str, where: str) -> None:
        super().__init__(f"there is no object {name!r} in {where}")
        self.name = name


class StoreCorrupt(EngineFailed):
    """An object is not what was stored: cut off, or its checksum does not match."""

    def __init__(self, name: str, problem: str) -> None:
        super().__init__(
            f"the stored object {name!r} is damaged: {problem}. Restore it from a copy of the store, or go "
            "back to an older snapshot."
        )
        self.name = name


class StoreUnreachable(OSError):
    """The object store does not answer, or not as it should; a later attempt may succeed."""


class StoreRefused(ConfigurationError, OSError):
    """The object store answers, and refuses: keys, rights, bucket, region or clock are wrong.

    Also an `OSError`: an engine that is running when it comes up goes on without the store, as it does in an outage.
    """


class StoreReader(Protocol):
    """The reading half of a store. Names, errors and threads are as with `Store`."""

    def get(self, name: str) -> bytes:
        """The object's content. Raises `NotFound`."""
        ...

    def get_range(self, name: str, start: int, size: int) -> bytes:
        """`size` bytes of the object's content from `start` on, fewer if it ends before. Raises `NotFound`."""
        ...

    def list(self, prefix: str) -> list[str]:
        """All names that start with `prefix` (any string, `""` for all), sorted."""
        ...


class Store(StoreReader, Protocol):
    """Blobs by name. A name is parts joined by `/`; a part is not empty and does not start with a dot.

    No name may continue another one (`a` and `a/b`); a store may refuse that, or not. A bad name raises `ValueError`;
    an unreachable or full store raises `OSError`. All methods may be called from any thread, and block.
    """

    def put(self, name: str, data: bytes) -> None:
        """Stores or replaces an object: atomic, and durable when it returns."""
        ...

    def put_new(self, name: str, data: bytes) -> bool:
        """Stores an object unless there is one of this name: of several callers at once, one does.

        False if there is one with another content. True if there is one with the same content: it may be this caller's,
        from an attempt whose answer was lost. So callers that compete must store different contents. Atomic, and
        durable.
        """
        ...

    def delete(self, name: str) -> None:
        """Removes an object; fine if it is missing. After a power cut it may be back."""
        ...


def check_name(name: str) -> None:
    """Raises `ValueError`, which says what is wrong, for a name that no object can have."""
    problem = _problem(name)
    if problem is not None:
        raise ValueError(f"{name!r} cannot name an object: {problem}. Use parts like 'snapshots/42/slot-3'.")


def is_name(name: str) -> bool:
    """Whether an object can have this name."""
    return _problem(name) is None


def can_begin_a_name(prefix: str) -> bool:
    """Whether any name can start with `prefix`: `/etc` or `../x` cannot."""
    folders, last = prefix.split("/")[:-1], prefix.rpartition("/")[2]
    return "\0" not in prefix and all(folders) and not any(part.startswith(".") for part in (*folders, last))


def _problem(name: str) -> str | None:
    parts = name.split("/")
    try:
        lengths = [len(part.encode()) for part in parts]
    except UnicodeEncodeError:
        return "it is not valid Unicode"
    if "\0" in name:
        return "it contains a NUL"
    if not all(parts):
        return "it, or a part of it, is empty"
    if any(part.startswith(".") for part in parts):
        return "a part of it starts with a dot"
    if max(lengths) > COMPONENT_BYTES_MAX or len(name.encode()) > NAME_BYTES_MAX:
        return f"it is over {NAME_BYTES_MAX} bytes, or a part of it over {COMPONENT_BYTES_MAX}"
    return None
