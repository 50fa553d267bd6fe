"""Reads outside the log on a worker process: the connections of gateways, and the slice of reads in each pass.

A gateway's connection takes reads, and followers of changes. A gateway that does not read its answers is cut off, and
asks again over a new connection: it never holds up the worker.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable
from functools import partial
from itertools import count
from typing import Final

from styx.cluster.wire import GATEWAY, FromWorker, encode, reads_hears
from styx.cluster.worker.following import WorkerFollowers
from styx.cluster.worker.metrics import WorkerCounters
from styx.cluster.worker.peers import PING_SECONDS, Peers
from styx.host.alarm import wall_clock_us
from styx.model.freshness import AT, LATEST, SESSION, STRICT
from styx.model.limits import MIB
from styx.protocol.reads import READ_NUMBERS, BetweenWorkers, ReadAsked, ReadDropped
from styx.reports.function_reports import FunctionReports
from styx.transport import Connection
from styx.worker.events import EpochWanted
from styx.worker.read_exchange import ReadExchange, ToClient
from styx.worker.worker import Worker

UNSENT_BYTES_MAX: Final = 256 * MIB
"""Answers that wait for one gateway; with more it counts as gone."""


class WorkerReads:
    """The reads of one registration. `give` takes an event for the worker, `wake` lets a pass begin soon.

    A gateway that is silent for longer than `silence_seconds` is gone.
    """

    def __init__(
        self,
        worker: Worker,
        peers: Peers,
        reports: FunctionReports,
        counters: WorkerCounters,
        give: Callable[[EpochWanted], None],
        wake: Callable[[], None],
        silence_seconds: float,
    ) -> None:
        self.exchange = ReadExchange(worker)
        self.following = WorkerFollowers(worker, self._send)
        self._worker = worker
        self._peers = peers
        self._reports = reports
        self._counters = counters
        self._too_old = self._dropped = 0
        self._give = give
        self._wake = wake
        self._silence_seconds = silence_seconds
        self._clients: dict[int, Connection] = {}
        self._numbers = count()
        self._proved: tuple[int, float] = (-1, -float("inf"))

    # Gateways ----------------------------------------------------------------------------------------------

    def accept(self, connection: Connection) -> None:
        """Takes the connection of a gateway."""
        assert connection.peer.role == GATEWAY
        client = next(self._numbers)
        self._clients[client] = connection
        connection.start(
            partial(self._hear, client),
            partial(self._gone, client),
            ping_seconds=PING_SECONDS,
            silence_seconds=self._silence_seconds,
        )

    def close(self) -> None:
        """Ends all connections."""
        clients, self._clients = self._clients, {}
        for client, connection in clients.items():
            self._forget(client)
            connection.abort("the worker registers anew")

    def _hear(self, client: int, connection: Connection, payloads: list[bytes]) -> None:
        if client not in self._clients:
            return
        for payload in payloads:
            message = reads_hears.decode(payload)
            if isinstance(message, ReadAsked):
                self._counters.reads[_freshness(message)] += 1
                if message.staleness_s is not None:
                    message = self._not_older(message, message.staleness_s)
                number = READ_NUMBERS + secrets.randbelow(READ_NUMBERS)
                self.exchange.asked(client, message, number, wall_clock_us())
            elif isinstance(message, ReadDropped):
                self.exchange.dropped(client, message.id)
            else:
                self.following.hear(client, message)
        self._wake()

    def _gone(self, client: int, connection: Connection, reason: str) -> None:
        if self._clients.pop(client, None) is not None:
            self._forget(client)
            self._wake()

    def _forget(self, client: int) -> None:
        self.exchange.client_gone(client)
        self.following.client_gone(client)

    # How old the state is ------------------------------------------------------------------------------------

    def recorded(self, epoch: int) -> Callable[[], None]:
        """The record of an epoch is about to be appended; the callback is for when it is durable."""
        began_s = time.monotonic()

        def durable() -> None:
            self._proved = max(self._proved, (epoch - 1, began_s))

        return durable

    def _not_older(self, message: ReadAsked, seconds: float) -> ReadAsked:
        """The read as one that sees all that was answered longer ago than `seconds`.

        When the durable record of an epoch was appended, nothing had been answered that the end of the epoch before
        lacks (`fence_epoch`): so that end is as old as the append, by this process's clock. If that is too old, the
        read waits for a record of its own.
        """
        epoch, appended_s = self._proved
        if time.monotonic() - appended_s <= seconds:
            return ReadAsked(message.id, message.generation, message.request, max(epoch, message.at_least))
        return ReadAsked(message.id, message.generation, message.request, message.at_least, fenced=True)

    # Peers and passes ----------------------------------------------------------------------------------------

    def hear_peer(self, peer: int, message: BetweenWorkers) -> None:
        """Takes a message of a worker."""
        self.exchange.heard(peer, message)
        self._wake()

    def peer_lost(self, peer: int) -> None:
        """A connection to a worker of the generation is lost."""
        self.exchange.peer_lost(peer)
        self._wake()

    def run(self) -> bool:
        """Runs a slice, in a pass, behind the steps of the protocol; whether there is more to run."""
        more = self._run_reads() | self.following.run()
        self._counters.followers_dropped += self.following.followers.dropped - self._dropped
        self._dropped = self.following.followers.dropped
        return more

    def _run_reads(self) -> bool:
        exchange = self.exchange
        if not exchange.under_way and not exchange.runnable:
            return False
        if exchange.runnable:
            for sent in exchange.run(self._worker.limits.slice_invocations):
                if isinstance(sent, ToClient):
                    self._send(sent.client, sent.answer)
                else:
                    self._peers.send(sent.peer, encode(sent.message))
            self._counters.reads_too_old += exchange.reads.too_old - self._too_old
            self._too_old = exchange.reads.too_old
            if not self._reports.notes.empty:
                self._reports.take()
        wanted = exchange.epoch_wanted()
        if wanted is not None:
            self._give(wanted)
        return exchange.runnable

    def _send(self, client: int, message: FromWorker) -> None:
        connection = self._clients.get(client)
        if connection is None:
            return
        if connection.unsent_bytes > UNSENT_BYTES_MAX:
            connection.abort(f"it does not read: over {UNSENT_BYTES_MAX} bytes of answers wait")
            return
        connection.send(encode(message))


def _freshness(message: ReadAsked) -> str:
    """What the client asked for, as far as the worker is told."""
    if message.at is not None:
        return AT
    if message.fenced:
        return STRICT
    return SESSION if message.at_least >= 0 else LATEST
