"""Whether the coordinator's own store has what workers say that they have stored, before a manifest counts on it.

A worker that was told of another store, in an upgrade that changes its address say, stores its parts there. Reads only.
"""

from __future__ import annotations

from styx.protocol.manifest import Manifest
from styx.store.base import NotFound, StoreReader


def check_stored(store: StoreReader, manifest: Manifest) -> None:
    """Raises `OSError` if a part of the snapshot is not there. One request for each object that it is new with."""
    names = {slot.part.stored.name for slot in manifest.slots if slot.part.stored is not None}
    for name in sorted(names):
        try:
            store.get_range(name, 0, 1)
        except NotFound as error:
            raise OSError(
                f"{error}, although a worker says that it has stored it: do all workers use the coordinator's store? "
                "See STYX_STORE and the options of the store"
            ) from None
