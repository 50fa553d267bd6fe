"""How often each transaction was carried into a next epoch: from the epoch that gave it its TID, by the epoch records,
to the epoch of its reply.

For apps without external calls, whose parked transactions would count as carried in each epoch that they wait.
"""

from __future__ import annotations

import statistics
from bisect import bisect_right
from collections.abc import Iterable
from typing import NamedTuple

from styx.messages import Reply
from styx.sequencer.epoch_record import EpochRecord, LogEntry


class Carries(NamedTuple):
    """Of a number of answered transactions. `mean`, `median` and `most` are of the `carried` ones; 0 without any.

    `epochs` is the number of epochs from the first one that sequenced one of them to the last one that answered one.
    """

    transactions: int
    carried: int
    mean: float
    median: float
    most: int
    epochs: int

    @property
    def share(self) -> float:
        """Of the transactions, those that were carried at least once."""
        return self.carried / self.transactions if self.transactions else 0.0


def carries(records: Iterable[LogEntry], replies: Iterable[Reply], n_slots: int) -> Carries:
    """Of the transactions that `replies` answer; `records` are the epochs stream from its first record on.

    Raises `ValueError` if the records do not reach back to the first of these transactions.
    """
    # A later generation's record of an epoch replaces an incomplete one of an earlier generation.
    counters = {record.epoch: record.counter for record in records if isinstance(record, EpochRecord)}
    epochs = sorted(counters)
    # An epoch without new requests has the counter of the next one, which then sequenced what follows.
    starts = [counters[epoch] for epoch in epochs]
    times: list[int] = []
    first, last = None, -1
    for reply in replies:
        index = bisect_right(starts, (reply.tid - 1) // n_slots) - 1
        if index < 0:
            raise ValueError(f"no epoch record is old enough for transaction {reply.tid}")
        sequenced = epochs[index]
        times.append(reply.epoch - sequenced)
        first = sequenced if first is None else min(first, sequenced)
        last = max(last, reply.epoch)
    again = [each for each in times if each]
    return Carries(
        transactions=len(times),
        carried=len(again),
        mean=statistics.fmean(again) if again else 0.0,
        median=statistics.median(again) if again else 0.0,
        most=max(again, default=0),
        epochs=0 if first is None else last - first + 1,
    )
