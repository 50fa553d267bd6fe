"""The reader of changes of a synchronous client."""

from __future__ import annotations

from styx.client.changes import ChangedEpoch, ChangeReader
from styx.client.sync_reader import SyncReader


class SyncChangeReader(SyncReader[ChangedEpoch]):
    """The epochs with changes, one by one, as `ChangeReader` gives them."""

    _reader: ChangeReader

    @property
    def epoch(self) -> int | None:
        """As `ChangeReader.epoch`."""
        return self._reader.epoch

    def begin(self) -> int:
        """As `ChangeReader.begin`."""
        epoch: int = self._start(self._reader.begin()).result()
        return epoch
