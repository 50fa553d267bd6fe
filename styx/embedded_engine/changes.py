"""The change feed of an embedded engine: its followers, and what waits for each of them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from itertools import count

from styx.host.passes import Passes
from styx.model.changes import Given, follow_error
from styx.worker.followers import Followed, FollowEnded, Followers
from styx.worker.reads import UNAVAILABLE
from styx.worker.worker import Worker


class Mailbox:
    """What a follower is to get next, until it takes it. `put` may come at any time, and is never waited for: who gives
    sends only a few messages with changes ahead, and those without say no more than how far the others go.
    """

    def __init__(self) -> None:
        self._given: list[Given] = []
        self._ended: FollowEnded | None = None
        self._there = asyncio.Event()

    def put(self, given: Followed | FollowEnded) -> None:
        """Something is given."""
        if isinstance(given, FollowEnded):
            self._ended = given
        elif self._given and not given.epochs:
            self._given[-1] = Given(given.through, self._given[-1].epochs)
        else:
            self._given.append(Given(given.through, given.epochs))
        self._there.set()

    async def take(self) -> Given:
        """The next one; raises what the follower ended with, behind all that came before."""
        while not self._given:
            if self._ended is not None:
                raise follow_error(self._ended.code, self._ended.message)
            self._there.clear()
            await self._there.wait()
        return self._given.pop(0)


class EngineChanges:
    """A `ChangeSource`: the followers of one engine, which are served in its `passes` from the first one on."""

    def __init__(self, worker: Worker, passes: Passes) -> None:
        self.followers = Followers(worker)
        self._passes = passes
        self._numbers = count()
        self._mailboxes: dict[int, Mailbox] = {}
        self._over: FollowEnded | None = None

    async def follow(self, operator: str, table: str | None, after: int) -> AsyncIterator[Given]:
        """As `ChangeSource.follow`."""
        number, mailbox = next(self._numbers), Mailbox()
        self._mailboxes[number] = mailbox
        if self._over is not None:
            mailbox.put(self._over)
        self.followers.follow(number, operator, table, after)
        self._passes.beside(self.run)
        try:
            while True:
                given = await mailbox.take()
                if given.epochs:
                    self.followers.taken(number, 1)
                    self._passes.wake()
                yield given
        finally:
            del self._mailboxes[number]
            self.followers.leave(number)

    def run(self) -> bool:
        """Gives what there is, in a pass, behind the steps of the protocol; whether there is more."""
        followers = self.followers
        if followers.runnable:
            for given in followers.run():
                mailbox = self._mailboxes.get(given.id)
                if mailbox is not None:
                    mailbox.put(given)
        return followers.runnable

    def end(self, reason: str) -> None:
        """Nobody is given anything any more."""
        self._over = FollowEnded(None, UNAVAILABLE, "NotSent", reason)
        for mailbox in self._mailboxes.values():
            mailbox.put(self._over)
