"""Requests that an operator has set aside, because the engine failed at them: they are refused, and never run.

Each is an object in the store, which the store keeps for ever. It takes effect at the next start or recovery
(`styx.worker.intake`). The records of the log do not change.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from styx.errors import ConfigurationError
from styx.store.base import Store, StoreReader

PREFIX: Final = "aside/"
_PLACE: Final = re.compile(r"(\d{1,9}+):(\d{1,18}+)")

Place = tuple[int, int]
"""(slot, offset) of a request's record."""


def place_of(text: str) -> Place:
    """From SLOT:OFFSET. Raises `ConfigurationError`."""
    found = _PLACE.fullmatch(text)
    if found is None:
        raise ConfigurationError(f"a request's place is SLOT:OFFSET, as the failure names it, not {text!r}")
    return int(found[1]), int(found[2])


def set_aside(store: Store, place: Place) -> None:
    """Durable when it returns."""
    store.put(f"{PREFIX}{place[0]}-{place[1]}", b"set aside by an operator")


def read(store: StoreReader) -> frozenset[Place]:
    """All that were set aside."""
    places = (name.removeprefix(PREFIX).split("-") for name in store.list(PREFIX))
    return frozenset((int(slot), int(offset)) for slot, offset in places)


def outcome(place: Place, words: str, dry_run: bool) -> str:
    """What is said of a request, given in `words`, that was set aside, or that could be."""
    would = "would be" if dry_run else "is"
    return f"request {place[0]}:{place[1]}, {words}, {would} set aside: it is refused, and not run"


def listing(places: Iterable[Place]) -> str:
    """One line for each."""
    return "\n".join(f"{slot}:{offset}" for slot, offset in sorted(places)) or "no request is set aside"
