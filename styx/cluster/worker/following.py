"""The change feed on a worker process: the gateways' followers of its epochs."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from styx.protocol.changes import ChangesGiven, FollowAsked, FollowLeft, FollowOver, FollowTaken
from styx.worker.followers import Followed, FollowEnded, Followers
from styx.worker.reads import UNAVAILABLE
from styx.worker.worker import Worker


class _Id(NamedTuple):
    client: int
    number: int


class WorkerFollowers:
    """Those of one registration. `send` sends a message to a gateway, by the number of its connection."""

    def __init__(self, worker: Worker, send: Callable[[int, ChangesGiven | FollowOver], None]) -> None:
        self.followers = Followers(worker)
        self._worker = worker
        self._send = send

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
        for given in followers.run():
            self._tell(given)
        return followers.runnable

    def _tell(self, given: Followed | FollowEnded) -> None:
        client, number = given.id
        if isinstance(given, FollowEnded):
            self._send(client, FollowOver(number, given.code, given.message))
        else:
            self._send(client, ChangesGiven(number, given.through, given.epochs))
