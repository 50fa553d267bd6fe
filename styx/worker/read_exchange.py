"""Reads outside the log between the workers of a cluster: whole reads of gateways, parts of peers, and parts that go to
peers. It is as pure as the worker: messages in, messages out.

Ids of others are never taken for one's own: a read is known by its client and the client's number, a part by its peer
and the peer's number. Whatever ends early is failed as `unavailable`, which says that it can be asked again: a peer
that is lost, a generation that has ended, a slot that is elsewhere. A part whose read nobody waits for is dropped on
the other worker as well, so nothing outlives whoever asked for it.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from styx.messages import decode_request
from styx.protocol.reads import (
    BetweenWorkers,
    PartAnswered,
    PartAsked,
    PartDropped,
    PartEnded,
    PartFailed,
    ReadAnswered,
    ReadAsked,
    ReadPart,
)
from styx.worker.events import EpochWanted
from styx.worker.reads import UNAVAILABLE, AskPart, ReadEnded, Reads, ReadWanted
from styx.worker.worker import Worker

READS_MAX: Final = 10_000
"""Whole reads under way on one worker."""
CLIENT_READS_MAX: Final = 5_000
"""Those of one client, which is a gateway: one that asks for many leaves room for others."""
PARTS_MAX: Final = 40_000
"""Parts of other workers' reads under way on one worker."""


class ToPeer(NamedTuple):
    """Send to a worker of the generation; a lost message is that of a lost worker."""

    peer: int
    message: BetweenWorkers


class ToClient(NamedTuple):
    """Answer a gateway."""

    client: int
    answer: ReadAnswered


class _Whole(NamedTuple):
    client: int
    number: int


class _Part(NamedTuple):
    peer: int
    number: int
    generation: int


class _Asked(NamedTuple):
    """A part that a peer runs for the read or part `id`."""

    id: Any
    peer: int
    generation: int


class ReadExchange:
    """Of one worker. What it wants sent comes from `run`; `runnable` says whether there is something."""

    def __init__(self, worker: Worker) -> None:
        self.reads = Reads(worker)
        self._worker = worker
        self._generation = worker.generation
        self._by_client: dict[int, int] = {}
        self._parts = 0
        self._next = 0
        self._asked: dict[int, _Asked] = {}
        self._asks: dict[Any, int] = {}
        self._lost: set[int] = set()
        self._out: list[ToPeer | ToClient] = []

    @property
    def runnable(self) -> bool:
        """Whether `run` would do something now."""
        return bool(self._out) or self.reads.runnable

    @property
    def under_way(self) -> int:
        """Whole reads and parts of others."""
        return len(self.reads)

    def epoch_wanted(self) -> EpochWanted | None:
        """An event for the worker, if a read waits for an epoch that nobody else wants; once for each epoch."""
        generation, epoch = self._worker.generation_data, self.reads.epoch_wanted
        return EpochWanted(generation.number, epoch) if epoch > max(generation.wanted, generation.epoch) else None

    # Gateways ----------------------------------------------------------------------------------------------

    def asked(self, client: int, message: ReadAsked, number: int, timestamp_us: int) -> None:
        """A gateway asks; `number` and `timestamp_us` are as in `ReadWanted`."""
        under_way = self._by_client.get(client, 0)
        if under_way >= CLIENT_READS_MAX or sum(self._by_client.values()) >= READS_MAX:
            text = f"{len(self.reads)} reads are under way on the worker; try again soon"
            self._refuse(client, message, PartFailed("overloaded", "RequestRejected", text))
        elif message.generation > self._worker.generation:
            self._refuse(client, message, _unavailable("the worker has not come to the newest generation yet"))
        else:
            self._by_client[client] = under_way + 1
            request = decode_request(message.request)
            its_id = _Whole(client, message.id)
            place = (its_id, request, number, timestamp_us)
            self.reads.ask(ReadWanted(*place, message.at_least, message.at, message.fenced))

    def _refuse(self, client: int, message: ReadAsked, end: PartEnded) -> None:
        self._out.append(ToClient(client, ReadAnswered(message.id, -1, end)))

    def dropped(self, client: int, number: int) -> None:
        """The gateway does not wait for this read any more; it may have ended already."""
        self._forget(_Whole(client, number))

    def client_gone(self, client: int) -> None:
        """The gateway is gone, and all that it has asked for."""
        for its_id in [each for each in self.reads.ids if type(each) is _Whole and each.client == client]:
            self._forget(its_id)
        self._by_client.pop(client, None)

    # Peers -------------------------------------------------------------------------------------------------

    def heard(self, peer: int, message: BetweenWorkers) -> None:
        """A worker asks for a part, answers one, or does not want one any more."""
        if isinstance(message, PartAsked):
            self._take_part(peer, message)
        elif isinstance(message, PartDropped):
            self._forget(_Part(peer, message.id, message.generation))
        else:
            asked = self._asked.get(message.id)
            if asked is not None and asked.peer == peer:
                self._answered(message.id, message.end)

    def _take_part(self, peer: int, message: PartAsked) -> None:
        if message.generation != self._worker.generation:
            end = _unavailable("the generation has ended")
            self._out.append(ToPeer(peer, PartAnswered(message.generation, message.id, end)))
        elif self._parts >= PARTS_MAX:
            end = PartFailed("overloaded", "RequestRejected", f"{self._parts} parts of reads are under way on a worker")
            self._out.append(ToPeer(peer, PartAnswered(message.generation, message.id, end)))
        else:
            self._parts += 1
            self.reads.ask_part(_Part(peer, message.id, message.generation), message.part)

    def peer_lost(self, peer: int) -> None:
        """The connection to a worker of the generation is lost, for the rest of it."""
        self._follow()
        self._lost.add(peer)
        for number in [number for number, asked in self._asked.items() if asked.peer == peer]:
            self._answered(number, _unavailable(f"the connection to worker {peer} is lost"))
        for its_id in [each for each in self.reads.ids if type(each) is _Part and each.peer == peer]:
            self._forget(its_id)

    def _answered(self, number: int, end: PartEnded) -> None:
        asked = self._asked.pop(number)
        del self._asks[asked.id]
        self.reads.answer(asked.id, end)

    # What comes of it --------------------------------------------------------------------------------------

    def run(self, invocations: int) -> list[ToPeer | ToClient]:
        """Runs about as many functions; gives what is to be sent."""
        self._follow()
        for outcome in self.reads.run(invocations):
            if isinstance(outcome, AskPart):
                self._ask(outcome.id, outcome.part)
            else:
                self._ended(outcome)
        out, self._out = self._out, []
        return out

    def _follow(self) -> None:
        """Notes that the worker has begun a new generation, if it has: there each peer can be reached, until it is
        lost.
        """
        if self._generation != self._worker.generation:
            self._generation = self._worker.generation
            self._lost.clear()

    def _ask(self, its_id: Any, part: ReadPart) -> None:
        owner = self._worker.executor.owners.get(part.slot)
        if owner is None or owner == self._worker.id or owner in self._lost:
            self.reads.answer(its_id, _unavailable(f"the worker of slot {part.slot} cannot be reached"))
            return
        self._next += 1
        self._asked[self._next] = _Asked(its_id, owner, self._generation)
        self._asks[its_id] = self._next
        self._out.append(ToPeer(owner, PartAsked(self._generation, self._next, part)))

    def _ended(self, ended: ReadEnded) -> None:
        its_id = ended.id
        self._drop_part_of(its_id)
        if type(its_id) is _Whole:
            self._one_less(its_id)
            self._out.append(ToClient(its_id.client, ReadAnswered(its_id.number, ended.epoch, ended.end)))
        else:
            self._parts -= 1
            self._out.append(ToPeer(its_id.peer, PartAnswered(its_id.generation, its_id.number, ended.end)))

    def _forget(self, its_id: _Whole | _Part) -> None:
        if its_id not in self.reads.ids:
            return
        self.reads.cancel(its_id)
        self._drop_part_of(its_id)
        if type(its_id) is _Whole:
            self._one_less(its_id)
        else:
            self._parts -= 1

    def _one_less(self, its_id: _Whole) -> None:
        left = self._by_client.pop(its_id.client, 0) - 1  # 0: its client went between its end and this
        if left > 0:
            self._by_client[its_id.client] = left

    def _drop_part_of(self, its_id: Any) -> None:
        """Of a read that has ended while a peer runs a part of it."""
        number = self._asks.pop(its_id, None)
        if number is not None:
            asked = self._asked.pop(number)
            self._out.append(ToPeer(asked.peer, PartDropped(asked.generation, number)))


def _unavailable(why: str) -> PartFailed:
    return PartFailed(UNAVAILABLE, "NotSent", f"{why}: ask again")
