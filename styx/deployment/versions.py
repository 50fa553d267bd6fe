"""The versions of the app: signed packages in the object store, numbered from 1, never changed and never reused.

The protocol decides which version runs. Blocks; for a background thread.
"""

from __future__ import annotations

from typing import Final

from styx.store.base import NotFound, Store, StoreReader

PREFIX: Final = "apps/"
RAN_PREFIX: Final = "apps-that-ran/"
"""A version that took effect has an empty object of its number here; one that no worker could run has none."""
_DIGITS: Final = 10


def store_version(store: Store, package: bytes) -> int:
    """Stores a package under the next number, which it returns."""
    number = max(versions(store), default=0) + 1
    while not store.put_new(version_name(number), package):
        number += 1
    return number


def load_version(store: StoreReader, number: int) -> bytes | None:
    """The package of a version; None if there is none of this number."""
    try:
        return store.get(version_name(number))
    except NotFound:
        return None


def versions(store: StoreReader) -> list[int]:
    """All numbers, ascending."""
    return sorted(int(name.removeprefix(PREFIX)) for name in store.list(PREFIX))


def note_running(store: Store, number: int) -> None:
    """This version has taken effect."""
    store.put(ran_name(number), b"")


def load_version_before(store: StoreReader, number: int) -> bytes | None:
    """The package of the last version that ran before this one; None if there is none."""
    before = version_before(store, number)
    return load_version(store, before) if before else None


def version_before(store: StoreReader, number: int) -> int:
    """The last version that ran before this one; 0 if there is none."""
    ran = (int(name.removeprefix(RAN_PREFIX)) for name in store.list(RAN_PREFIX))
    return max((other for other in ran if other < number), default=0)


def newest_that_ran(store: StoreReader) -> int:
    """The last version that has taken effect; 0 if none has."""
    return version_before(store, 10**_DIGITS)


def version_name(number: int) -> str:
    """The name of the object that holds its package."""
    return f"{PREFIX}{number:0{_DIGITS}d}"


def ran_name(number: int) -> str:
    """The name of the object that says that it took effect."""
    return f"{RAN_PREFIX}{number:0{_DIGITS}d}"
