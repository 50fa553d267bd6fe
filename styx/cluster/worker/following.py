"""The change feed on a worker process: the gateways' followers of its epochs."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable
from typing import Final, NamedTuple

from styx.host.alarm import wall_clock_us
from styx.protocol.changes import ChangesGiven, FollowAsked, FollowLeft, FollowOver, FollowTaken
from styx.worker.followers import Followed, FollowEnded, Followers
from styx.worker.reads import UNAVAILABLE
from styx.worker.worker import Worker

CLOSINGS_MAX: Final = 4_096
"""Epochs of which it is known when they closed; of an older one the time is not told."""


class _Id(NamedTuple):
    client: int
    number: int


class Closings:
    """When the last epochs closed, as far as somebody looked: an epoch that it did not see closed before the next one
    that it did.
    """

    def __init__(self) -> None:
        self._epochs: list[int] = []
        self._times: list[int] = []

    def closed(self, epoch: int, now_us: int) -> None:
        """The last one that has closed is `epoch`. If it is below others, they were of an older generation."""
        if not self._epochs or epoch < self._epochs[-1]:
            self._epochs, self._times = [epoch], [0]  # it may have closed long before
        elif epoch > self._epochs[-1]:
            self._epochs.append(epoch)
            self._times.append(now_us)
            if len(self._epochs) > 2 * CLOSINGS_MAX:
                del self._epochs[:CLOSINGS_MAX], self._times[:CLOSINGS_MAX]

    def of(self, epoch: int) -> int:
        """When it closed, in microseconds since 1970; 0 if that is not known."""
        at = bisect_left(self._epochs, epoch)
        return self._times[at] if at < len(self._times) and (at or self._epochs[0] == epoch) else 0


class WorkerFollowers:
    """Those of one registration. `send` sends a message to a gateway, by the number of its connection; `clock_us` gives
    the time since 1970.
    """

    def __init__(
        self,
        worker: Worker,
        send: Callable[[int, ChangesGiven | FollowOver], None],
        clock_us: Callable[[], int] = wall_clock_us,
    ) -> None:
        self.followers = Followers(worker)
        self._worker = worker
        self._send = send
        self._clock_us = clock_us
        self._closings = Closings()

    def hear(self, client: int, message: FollowAsked | FollowLeft | FollowTaken) -> None:
        """Takes a message of a gateway."""
        its_id = _Id(client, message.id)
        if isinstance(message, FollowLeft):
            self.followers.leave(its_id)
        elif isinstance(message, FollowTaken):
            self.followers.taken(its_id, message.messages)
        elif message.generation != self._worker.generation:
            text = f"the worker is in generation {self._worker.generation}, not {message.generation}: ask again"
            self._send(client, FollowOver(message.id, UNAVAILABLE, text))
        else:
            self.followers.follow(its_id, message.operator, message.table, message.after)

    def client_gone(self, client: int) -> None:
        """The gateway is gone, and so are its followers."""
        for its_id in self.followers.ids():
            if its_id.client == client:
                self.followers.leave(its_id)

    def run(self) -> bool:
        """Sends what there is, in a pass, behind the steps of the protocol; whether there is more."""
        followers = self.followers
        if not followers.runnable:
            return False
        log = self._worker.generation_data.changes
        if log is not None:
            self._closings.closed(log.last, self._clock_us())
        for given in followers.run():
            self._tell(given)
        return followers.runnable

    def _tell(self, given: Followed | FollowEnded) -> None:
        client, number = given.id
        if isinstance(given, FollowEnded):
            self._send(client, FollowOver(number, given.code, given.message))
        else:
            self._send(client, ChangesGiven(number, given.through, given.epochs, self._closings.of(given.through)))
