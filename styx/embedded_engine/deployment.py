"""What a data directory belongs to: its app's name and its number of slots, written once, checked at each start.

Both decide where an entity lives, so another number would lose everything. Never changes what is there.
"""

from __future__ import annotations

import msgspec

from styx.errors import ConfigurationError
from styx.store.base import NotFound, Store, StoreCorrupt

DEPLOYMENT_NAME = "deployment"


class Deployment(msgspec.Struct, frozen=True):
    """Of which app the data is, and over how many slots its entities are spread."""

    app: str
    n_slots: int


def claim(store: Store, wanted: Deployment) -> None:
    """Writes `wanted` into an empty store; raises `ConfigurationError` if the store holds something else."""
    try:
        data = store.get(DEPLOYMENT_NAME)
    except NotFound:
        store.put(DEPLOYMENT_NAME, msgspec.json.encode(wanted))
        return
    try:
        found = msgspec.json.decode(data, type=Deployment)
    except msgspec.DecodeError as error:
        raise StoreCorrupt(DEPLOYMENT_NAME, str(error)) from None
    if found.app != wanted.app:
        raise ConfigurationError(
            f"the data directory holds the data of app {found.app!r}, not of {wanted.app!r}: use another data directory"
        )
    if found.n_slots != wanted.n_slots:
        raise ConfigurationError(
            f"the data directory was made with n_slots={found.n_slots}, which cannot change: "
            f"start with n_slots={found.n_slots} instead of {wanted.n_slots}, or use another data directory"
        )
