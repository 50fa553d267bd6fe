"""The claim of a store: the deployment that the store belongs to. It is written once and checked at each start.

App and number of slots decide where an entity lives, and limits decide outcomes that a replay must repeat: none of them
may change while the store has data. Blocks; for a background thread. A claim is never changed. The claim of a store
that is being restored says so, and no engine may start on that store.
"""

from __future__ import annotations

import logging

import msgspec

from styx.errors import ConfigurationError
from styx.model.limits import Limits
from styx.store.base import NotFound, Store, StoreCorrupt, StoreReader

NAME = "deployment"

_log = logging.getLogger("styx.coordinator")


class Claim(msgspec.Struct, frozen=True, omit_defaults=True):
    """The app, and over how many slots its entities are spread. A data directory has neither `reply_partitions` nor
    `limits`. `restoring` names the backup whose restore into this store has not ended.
    """

    app: str
    n_slots: int
    reply_partitions: int = 0
    limits: Limits | None = None
    restoring: str = ""


encode_claim = msgspec.json.encode
"""The content of its object."""


def read_claim(store: StoreReader) -> Claim | None:
    """None if there is none. Raises `StoreCorrupt`."""
    try:
        return decode_claim(store.get(NAME))
    except NotFound:
        return None


def decode_claim(data: bytes) -> Claim:
    """Raises `StoreCorrupt`."""
    try:
        return msgspec.json.decode(data, type=Claim)
    except msgspec.DecodeError as error:
        raise StoreCorrupt(NAME, str(error)) from None


def _claimed(store: Store, wanted: Claim) -> Claim:
    store.put_new(NAME, encode_claim(wanted))
    found = read_claim(store)
    if found is None:
        raise OSError(f"the store has lost the object {NAME!r} that was just written")
    return found


def claim_directory(store: Store, wanted: Claim) -> None:
    """Claims the store of a data directory; raises `ConfigurationError` if that is something else's."""
    # The look comes first: an engine starts on a full disk, and answers what the log has.
    found = read_claim(store) or _claimed(store, wanted)
    if found.app != wanted.app:
        raise ConfigurationError(
            f"the data directory holds the data of app {found.app!r}, not of {wanted.app!r}: use another data directory"
        )
    if found.n_slots != wanted.n_slots:
        raise ConfigurationError(
            f"the data directory was made with n_slots={found.n_slots}, which cannot change: "
            f"start with n_slots={found.n_slots} instead of {wanted.n_slots}, or use another data directory"
        )


def claim(store: Store, wanted: Claim) -> Claim:
    """The claim of a cluster's store: `wanted` if it was empty. Raises `ConfigurationError` if it is another one."""
    found = _claimed(store, wanted)
    if found.restoring:
        raise ConfigurationError(
            f"the backup {found.restoring} is being restored into this store, or its restore was interrupted: "
            "wait for styx restore to end, or run it again"
        )
    if found.app != wanted.app:
        raise ConfigurationError(
            f"the store holds the data of app {found.app!r}, not of {wanted.app!r}: use another bucket or prefix"
        )
    for what, option, there, asked in (
        ("slots", "--slots", found.n_slots, wanted.n_slots),
        ("replies partitions", "--reply-partitions", found.reply_partitions, wanted.reply_partitions),
    ):
        if there != asked:
            raise ConfigurationError(
                f"the deployment was made with {there} {what}, which cannot change: start with {option} {there} "
                f"instead of {asked}, or use another bucket or prefix and other topics"
            )
    if found.limits != wanted.limits:
        _log.warning("the limits are those that the deployment was made with: %s", found.limits)
    return found
