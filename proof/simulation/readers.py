"""Reads outside the log in the simulator: a worker is asked behind any step of the protocol, and asks others for parts.
Whoever takes no step is asked now and then as well: it may have been replaced without knowing it.

Messages of reads have a network of their own, so that a plan with reads runs as it does without them; but for strict
reads, for which workers begin epochs. Between the workers of a cluster they are lost with the connection.
"""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING, Final, NamedTuple

import msgspec

from proof.random_listings import random_listing, random_point
from proof.random_looks import random_look
from proof.random_rows import random_row_look
from proof.random_sweeps import random_survey
from styx.messages import Request, encode_request
from styx.protocol.reads import READ_NUMBERS, BetweenWorkers, PartReturned, ReadAnswered, ReadAsked
from styx.testing.reads import ReadSeen
from styx.worker.read_exchange import ReadExchange, ToClient, ToPeer
from styx.worker.reads import NOT_READ_ONLY, TOO_OLD, closed_epoch

if TYPE_CHECKING:
    from proof.simulation.worker_process import WorkerProcess

UNDER_WAY_MAX: Final = 20
"""Reads that a worker is asked for at once."""
BACK_MAX: Final = 8
"""How many epochs back a read goes at most; some of them are not kept any more."""
DROPPED: Final = 0.02
"""Share of looks at which somebody gives up waiting."""
LISTINGS: Final = 0.15
"""Share of the reads that give a part of a listing; the next one is of those that look at one entity."""
POINTS: Final = 0.1
_CLIENT: Final = 1
_encode = msgspec.msgpack.Encoder().encode
_decode: msgspec.msgpack.Decoder[BetweenWorkers] = msgspec.msgpack.Decoder(BetweenWorkers)


class _Asked(NamedTuple):
    """`least`: the read must not be older, whatever it asked for: it was asked behind replies and reads of that."""

    message: ReadAsked
    request: Request
    number: int
    timestamp_us: int
    least: int


class Readers:
    """Those who read at one worker. `seen` are all reads of the simulation that have ended in a result or an abort."""

    def __init__(self, host: WorkerProcess, seen: list[ReadSeen]) -> None:
        self._host = host
        self._seen = seen
        self._rng = Random(f"readers {host.world.plan.seed} {host.name}")
        # Other reads are the same with listings as without them.
        self._beside = Random(f"listings {host.world.plan.seed} {host.name}")
        self._exchange = ReadExchange(host.core)
        self._asked: dict[int, _Asked] = {}
        self._ids = 0

    def look(self) -> None:
        """Behind a step, or now and then: maybe a read is asked for, and those that can go on do so for a while."""
        host, rng, exchange = self._host, self._rng, self._exchange
        if rng.random() < host.world.plan.outside and len(self._asked) < UNDER_WAY_MAX and host.core.slots:
            self._ask()
        if self._asked and rng.random() < DROPPED:
            dropped = rng.choice(list(self._asked))
            del self._asked[dropped]
            exchange.dropped(_CLIENT, dropped)
        if exchange.runnable:
            for sent in exchange.run(rng.randint(1, 30)):
                if isinstance(sent, ToClient):
                    self._ended(sent.answer)
                else:
                    self._send(sent)
        wanted = exchange.epoch_wanted()
        if wanted is not None:
            host.world.time.after(0.0, host.give, wanted)
        if exchange.runnable and host.alive:
            host.world.time.after(0.0002, self._again)

    def _again(self) -> None:
        if self._host.alive and self._host.world.time.now_s >= self._host.frozen_until_s:
            self.look()

    def _ask(self) -> None:
        host, rng = self._host, self._rng
        world, core = host.world, host.core
        kind = rng.random()
        request: Request = self._listing() or (
            random_row_look(rng, "read")
            if kind < 0.4
            else random_survey(rng, "read")
            if kind < 0.6
            else random_look(rng, world.plan.profile, "read")
        )
        at, at_least, closed, fenced = None, -1, closed_epoch(core), rng.random() < world.plan.fences
        least = max(world.log.answered, world.read_strictly) if fenced else -1
        kind = rng.random()
        if fenced:
            pass
        elif kind < 0.4:
            at = max(-1, closed - rng.randrange(BACK_MAX))
        elif kind < 0.5:
            at_least = closed + 1
        elif kind < 0.6:
            at_least = world.log.answered  # what another worker's reply has brought
        self._ids += 1
        number, time_us = READ_NUMBERS + rng.getrandbits(60), world.log.timestamp_us
        message = ReadAsked(self._ids, core.generation, encode_request(request), at_least, at, fenced)
        self._asked[self._ids] = _Asked(message, request, number, time_us, max(least, at_least))
        self._exchange.asked(_CLIENT, message, number, time_us)

    def _listing(self) -> Request | None:
        """A listing or a look at one entity, in some of the reads."""
        rng, slots = self._beside, self._host.world.plan.slots
        drawn = rng.random()
        if drawn < LISTINGS:
            return random_listing(rng, slots, "read")
        return random_point(rng, "read") if drawn < LISTINGS + POINTS else None

    def _ended(self, answer: ReadAnswered) -> None:
        asked, end = self._asked.pop(answer.id, None), answer.end
        if asked is None:
            return  # it had ended already when it was dropped
        place = (answer.epoch, asked.number, asked.timestamp_us, asked.request)
        if isinstance(end, PartReturned):
            self._seen.append(ReadSeen(*place, end.value, None))
        elif end.code in ("aborted", "bad_arguments"):
            self._seen.append(ReadSeen(*place, None, (end.code, end.kind, end.message)))
        else:  # another version of the app may have declared the function otherwise
            assert end.code in (TOO_OLD, NOT_READ_ONLY, "unavailable"), end
            return
        assert answer.epoch >= asked.least, f"{answer} is older than {asked}"
        if asked.message.fenced:
            world = self._host.world
            world.read_strictly = max(world.read_strictly, answer.epoch)
            world.strict_reads += 1

    # Other workers -----------------------------------------------------------------------------------------

    def _send(self, sent: ToPeer) -> None:
        world, host = self._host.world, self._host
        peer = world.numbered(sent.peer)
        if peer is None:
            return
        link = host.links.get(peer.id)

        def deliver(data: bytes) -> None:
            if not world.plan.cluster or world.links.stands(peer, host.id, link):
                peer.readers.hear(host.id, _decode.decode(data))

        world.read_network.send(host.name, peer.name, deliver, _encode(sent.message))

    def hear(self, peer: int, message: BetweenWorkers) -> None:
        """A peer asks for a part of its read, answers one, or does not want one any more."""
        if self._host.alive:
            self._exchange.heard(peer, message)
            self._again()

    def lost(self, peer: int) -> None:
        """The connection to a peer is lost."""
        self._exchange.peer_lost(peer)
