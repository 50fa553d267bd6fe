"""Requests that an operator has set aside, because the engine failed at them: they are refused, and never run.

Each is an object in the store, which the store keeps for ever. It takes effect at the next start or recovery
(`styx.worker.intake`). The records of the log do not change. `examine` finds out whether a request may be set aside:
its record exists, and no outcome was given that setting it aside would take back.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final, NamedTuple

import msgspec

from styx.errors import ConfigurationError
from styx.log.base import LogReader, Stream
from styx.messages import ReplyRecord, decode_reply, decode_request
from styx.protocol.manifest import Manifest, SlotPart
from styx.sequencer.sequencer import slot_of
from styx.snapshot.manifest import newest_first, read_manifests
from styx.store.base import Store, StoreReader
from styx.values.codec import shown

PREFIX: Final = "aside/"
_PLACE: Final = re.compile(r"(\d{1,9}+):(\d{1,18}+)")

Place = tuple[int, int]
"""(slot, offset) of a request's record."""


class Asked(NamedTuple):
    """What a request asks for, in words, and how its reply is known."""

    words: str
    request_id: str


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


def examine(place: Place, n_slots: int, log: LogReader, replies: Iterable[bytes], store: StoreReader) -> str:
    """What the request is, in words. Raises `ConfigurationError` that says why it cannot be set aside.

    Reads the log and the newest snapshot's manifest, and blocks. `replies` are the records of the replies stream, as
    far back as the log has them. The answer holds only while the request is not run, or has not ended since.
    """
    slot, offset = place
    name = f"{slot}:{offset}"
    if slot >= n_slots:
        raise ConfigurationError(f"there is no request {name}: slots are 0 to {n_slots - 1}")
    if place in read(store):
        raise ConfigurationError(f"the request {name} is set aside already")
    manifests, _ = read_manifests(store)
    newest = newest_first(manifests)[:1]
    part = _part(newest, slot)
    payload = None if part is None else _pending(part, offset)
    if payload is None and part is not None and part.has_taken(offset):
        raise ConfigurationError(
            f"the request {name} has been answered: the snapshot of epoch {newest[0].epoch} holds what came of it"
        )
    if payload is None:
        payload = _in_log(log, slot, offset)
    asked = _asked(name, payload)
    for record in replies:
        reply = decode_reply(record)
        if reply.request_id == asked.request_id and slot_of(reply.sequence, n_slots) == slot:
            raise ConfigurationError(f"the request {name}, {asked.words}, has been answered: {_outcome(reply)}")
    return asked.words


def _part(newest: list[Manifest], slot: int) -> SlotPart | None:
    parts = [each.part for manifest in newest for each in manifest.slots if each.part.slot == slot]
    return parts[0] if parts else None


def _pending(part: SlotPart, offset: int) -> bytes | None:
    return next((pending.payload for pending in part.pending if pending.offset == offset), None)


def _in_log(log: LogReader, slot: int, offset: int) -> bytes:
    first, end = log.bounds(Stream.REQUESTS, slot)
    if first <= offset < end:
        for record in log.read(Stream.REQUESTS, slot, offset):
            if record.offset == offset:
                return record.payload
            break
    there = f"the log has {first} to {end - 1}" if first < end else "the log has none"
    raise ConfigurationError(f"there is no request {slot}:{offset}; of slot {slot} {there}")


def _asked(name: str, payload: bytes) -> Asked:
    try:
        request = decode_request(payload)
    except (msgspec.DecodeError, ValueError, RecursionError):
        raise ConfigurationError(f"the record {name} is no request, and is skipped as such") from None
    return Asked(f"{request.operator}.{request.function} on {shown(request.key)}", request.request_id)


def _outcome(reply: ReplyRecord) -> str:
    if reply.error is None:
        return "it has committed"
    code, kind, message = reply.error
    return f"{code}, {kind}: {message}"
