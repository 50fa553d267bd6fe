"""The check that the coordinator's own store has the parts that workers report as stored, before a manifest names them.

A worker that uses another store, for example during an upgrade that changes the store's address, stores its parts
there.
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
