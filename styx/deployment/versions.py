"""The versions of the app: signed packages in the object store, numbered from 1, never changed and never reused.

The protocol decides which version runs. Blocks; for a background thread.
"""

from __future__ import annotations

from typing import Final

from styx.store.base import NotFound, Store, StoreReader

PREFIX: Final = "apps/"
RAN_PREFIX: Final = "apps-that-ran/"
"""A version that took effect has an object of its number here; one that no worker could run has none. The object holds
the types of events that were published so far, which no later version may change; of older releases it is empty.
"""
NOTES_READ_MAX: Final = 10
"""Notes that are looked at for the published types."""
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


def note_running(store: Store, number: int, published: bytes = b"") -> None:
    """This version has taken effect, and these types of events are `published` since the first one."""
    store.put(ran_name(number), published)


def load_published(store: StoreReader, number: int) -> bytes:
    """What was noted as published when this version took effect, or the last one before it whose note says so; empty if
    none does.
    """
    ran = (int(name.removeprefix(RAN_PREFIX)) for name in store.list(RAN_PREFIX))
    for each in sorted((other for other in ran if other <= number), reverse=True)[:NOTES_READ_MAX]:
        published = store.get(ran_name(each))
        if published:
            return published
    return b""


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
