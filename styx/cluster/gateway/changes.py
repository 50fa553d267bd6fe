"""The change feed through a cluster's gateway: it follows all workers of a generation, and gives an epoch when all of
their parts are there.

When the generation ends, it takes what that has closed, and asks the workers of the next one for what comes behind the
last whole epoch. They run closed epochs again as they were, so no epoch is given twice, and none is left out: a worker
that has not kept what is wanted says so, and then the follower is told.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing
from functools import partial

from styx.cluster.gateway.epoch_merge import EpochMerge
from styx.cluster.gateway.reads import RETRY_SECONDS, ClusterReads, until
from styx.cluster.gateway.worker_link import Following
from styx.cluster.wire import Owners
from styx.model.changes import EpochChanges, Given, follow_error
from styx.protocol.changes import ChangesGiven, FollowAsked, FollowOver
from styx.worker.reads import UNAVAILABLE


class ClusterChanges:
    """A `ChangeSource`: the followers of one gateway, over the connections of its `reads`."""

    def __init__(self, reads: ClusterReads) -> None:
        self._reads = reads

    async def follow(self, operator: str, table: str | None, after: int) -> AsyncIterator[Given]:
        """As `ChangeSource.follow`. While no worker can answer it waits."""
        place, begun = after, False
        while True:
            known, changed = self._reads.known, self._reads.changed
            if known is not None:
                async with aclosing(GenerationChanges(self._reads, known, operator, table, place).given()) as given:
                    async for each in given:
                        if each.epochs or each.through > place or not begun:
                            place, begun = each.through, True
                            yield each
            await until(changed, None if known is None else RETRY_SECONDS)


class GenerationChanges:
    """One follower of the workers of one generation, behind the end of epoch `after`; `operator` and `table` are as in
    `followed`.
    """

    def __init__(self, reads: ClusterReads, known: Owners, operator: str, table: str | None, after: int) -> None:
        self._reads = reads
        self._known = known
        self._operator = operator
        self._table = table
        self._after = after
        self._workers = sorted(set(known.owners.values()))
        self._merge = EpochMerge(self._workers, after)
        self._there = asyncio.Event()
        self._left = set(self._workers)
        self._refused: FollowOver | None = None

    async def given(self) -> AsyncGenerator[Given, None]:
        """What is complete, until one of these workers is lost, or all of them have no more; the first one says where
        it begins. Raises what a worker says.
        """
        following: dict[int, Following] = {}
        try:
            for worker in self._workers:
                link = self._reads.link(self._known, worker)
                found = None if link is None else await link.follow(self._asked, partial(self._hear, worker))
                if found is None:
                    return
                following[worker] = found
            while True:
                self._there.clear()
                while (each := self._merge.take()) is not None:
                    yield each
                    for worker, messages in self._merge.taken().items():
                        following[worker].taken(messages)
                if self._refused is not None:
                    raise follow_error(self._refused.code, self._refused.message)
                if not self._left:
                    return
                await self._there.wait()
        finally:
            for each_following in following.values():
                each_following.leave()

    def _asked(self, number: int) -> FollowAsked:
        return FollowAsked(number, self._known.generation, self._operator, self._table, self._after)

    def _hear(self, worker: int, message: ChangesGiven | FollowOver | None) -> None:
        if isinstance(message, ChangesGiven):
            self._merge.put(worker, message.through, list(map(_flat, message.epochs)), message.closed_us)
        else:
            self._left.discard(worker)
            if message is None or not self._merge.has_begun(worker):
                self._left.clear()  # no epoch becomes whole any more
            if message is not None and message.code != UNAVAILABLE:
                self._refused = message
        self._there.set()


def _flat(epoch: EpochChanges) -> EpochChanges:
    """As the worker has it: keys of several parts have come as lists."""
    for table in epoch.tables:
        if table.keys and type(table.keys[0]) is list:
            table.keys[:] = map(tuple, table.keys)
    return epoch
