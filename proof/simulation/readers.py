"""Reads outside the log in the simulator: a worker is asked behind any step of the protocol, and asks others for parts.

Messages of reads have a network of their own, so that a plan with reads runs as it does without them.
"""

from __future__ import annotations

from functools import partial
from random import Random
from typing import TYPE_CHECKING, Final

import msgspec

from proof.random_looks import random_look
from proof.random_rows import random_row_look
from proof.random_sweeps import random_survey
from styx.messages import Request
from styx.protocol.reads import READ_NUMBERS, PartEnded, PartFailed, PartReturned, ReadPart
from styx.testing.reads import ReadSeen
from styx.worker.reads import NOT_READ_ONLY, TOO_OLD, AskPart, ReadEnded, Reads, ReadWanted, closed_epoch

if TYPE_CHECKING:
    from proof.simulation.worker_process import WorkerProcess

UNDER_WAY_MAX: Final = 20
"""Reads that a worker is asked for at once."""
BACK_MAX: Final = 8
"""How many epochs back a read goes at most; some of them are not kept any more."""
_encode = msgspec.msgpack.Encoder().encode
_decode_part = msgspec.msgpack.Decoder(ReadPart).decode
_decode_end = msgspec.msgpack.Decoder(PartEnded).decode


class Readers:
    """Those who read at one worker. `seen` are all reads of the simulation that have ended in a result or an abort."""

    def __init__(self, host: WorkerProcess, seen: list[ReadSeen]) -> None:
        self._host = host
        self._seen = seen
        self._rng = Random(f"readers {host.world.plan.seed} {host.name}")
        self._reads = Reads(host.core)
        self._asked: dict[int, ReadWanted] = {}
        self._parts: dict[int, tuple[WorkerProcess, int]] = {}
        self._ids = 0

    def look(self) -> None:
        """Behind a step: maybe a read is asked for, and those that can go on do so for a while."""
        host, rng = self._host, self._rng
        if rng.random() < host.world.plan.outside and len(self._asked) < UNDER_WAY_MAX and host.core.slots:
            self._ask()
        if self._reads.runnable:
            for outcome in self._reads.run(rng.randint(1, 30)):
                if isinstance(outcome, AskPart):
                    self._send_part(outcome)
                elif outcome.id in self._parts:
                    self._send_end(outcome)
                else:
                    self._ended(outcome)
        if self._reads.runnable and host.alive:
            host.world.time.after(0.0002, self._again)

    def _again(self) -> None:
        if self._host.alive and self._host.world.time.now_s >= self._host.frozen_until_s:
            self.look()

    def _ask(self) -> None:
        rng, core, profile = self._rng, self._host.core, self._host.world.plan.profile
        kind = rng.random()
        request: Request = (
            random_row_look(rng, "read")
            if kind < 0.4
            else random_survey(rng, "read")
            if kind < 0.6
            else random_look(rng, profile, "read")
        )
        at, at_least, closed = None, -1, closed_epoch(core)
        if rng.random() < 0.4:
            at = max(-1, closed - rng.randrange(BACK_MAX))
        elif rng.random() < 0.3:
            at_least = closed + 1
        its_id = self._next_id()
        number, time_us = READ_NUMBERS + rng.getrandbits(60), self._host.world.log.timestamp_us
        wanted = self._asked[its_id] = ReadWanted(its_id, request, number, time_us, at_least, at)
        self._reads.ask(wanted)

    def _next_id(self) -> int:
        self._ids += 1
        return self._ids

    def _ended(self, ended: ReadEnded) -> None:
        wanted, end = self._asked.pop(ended.id), ended.end
        assert ended.epoch >= wanted.at_least or isinstance(end, PartFailed), f"{ended} is older than {wanted}"
        place = (ended.epoch, wanted.number, wanted.timestamp_us, wanted.request)
        if isinstance(end, PartReturned):
            self._seen.append(ReadSeen(*place, end.value, None))
        elif end.code == "aborted":
            self._seen.append(ReadSeen(*place, None, (end.code, end.kind, end.message)))
        else:  # another version of the app may have declared the function otherwise
            assert end.code in (TOO_OLD, NOT_READ_ONLY, "unavailable"), end

    # Other workers -----------------------------------------------------------------------------------------

    def _send_part(self, ask: AskPart) -> None:
        world, host = self._host.world, self._host
        peer = world.numbered(host.core.executor.owners[ask.part.slot])
        if peer is None or peer is host:
            self._reads.answer(ask.id, PartFailed("unavailable", "NotSent", "nobody has the slot now"))
            return
        world.read_network.send(host.name, peer.name, partial(peer.readers.take_part, host, ask.id), _encode(ask.part))

    def take_part(self, asker: WorkerProcess, its_id: int, data: bytes) -> None:
        """A peer asks for a part of its read."""
        if self._host.alive:
            own = self._next_id()
            self._parts[own] = (asker, its_id)
            self._reads.ask_part(own, _decode_part(data))
            self._again()

    def _send_end(self, ended: ReadEnded) -> None:
        asker, its_id = self._parts.pop(ended.id)
        deliver = partial(asker.readers.take_end, its_id)
        self._host.world.read_network.send(self._host.name, asker.name, deliver, _encode(ended.end))

    def take_end(self, its_id: int, data: bytes) -> None:
        """A peer's part has ended."""
        if self._host.alive:
            end: PartEnded = _decode_end(data)
            self._reads.answer(its_id, end)
            self._again()
