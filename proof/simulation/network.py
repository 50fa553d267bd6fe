"""Connections between processes: in order within one connection, at random speed, so in any order across them.

A message to a process that has crashed meanwhile is lost; everything is encoded and decoded, as on a wire. Connections
between the workers of a cluster also break: frames on their way are lost, and each side learns of it in its own time.
Such a connection outlives its generation, as long as both ends believe in it; a worker that has lost one reports it and
cannot load its next generation before it has another.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from random import Random
from typing import TYPE_CHECKING

from proof.simulation.virtual_time import VirtualTime

if TYPE_CHECKING:
    from proof.simulation.worker_process import WorkerProcess

USUAL_DELAY_S = 0.001
SLOW_DELAY_S = 0.08


class Network:
    """`send` delivers later; the delivery decides itself whether its receiver is still there."""

    def __init__(self, time: VirtualTime, rng: Random, slow_share: float) -> None:
        self._time = time
        self._rng = rng
        self._slow_share = slow_share
        self._arrival_s: dict[tuple[str, str], float] = {}
        self.messages = 0

    def send(self, sender: str, receiver: str, deliver: Callable[[bytes], None], data: bytes) -> None:
        """Delivers `data` after everything sent earlier on this connection."""
        delay_s = self._rng.random() * (SLOW_DELAY_S if self._rng.random() < self._slow_share else USUAL_DELAY_S)
        arrival_s = max(self._arrival_s.get((sender, receiver), 0.0), self._time.now_s + delay_s)
        self._arrival_s[sender, receiver] = arrival_s
        self.messages += 1
        self._time.at(arrival_s, deliver, data)


NOTICE_S = 0.3
"""How long it takes at most to notice a broken connection, and to give up making one."""


class PeerLinks:
    """Ends of a connection are in `WorkerProcess.links`: the peer's number, and the connection's."""

    def __init__(self, time: VirtualTime, rng: Random, network: Network) -> None:
        self._time = time
        self._rng = rng
        self._network = network
        self._numbers = count()
        self._broken: set[int] = set()
        self._cut_until_s: dict[frozenset[int], float] = {}

    def connect(self, host: WorkerProcess, peer: WorkerProcess | None) -> bool:
        """Whether the host has a connection to the peer now."""
        if peer is None or not peer.alive:
            return False
        if peer.id in host.links:
            return True
        if self._time.now_s < self._cut_until_s.get(frozenset((host.process, peer.process)), 0.0):
            return False
        known = peer.links.get(host.id)
        host.links[peer.id] = peer.links[host.id] = next(self._numbers)
        if known is not None:
            self._broken.add(known)
            peer.lost(host.id, "it has connected anew")
        return True

    def send(self, host: WorkerProcess, peer: WorkerProcess, frame: bytes) -> None:
        """Delivers the frame, unless the connection breaks first."""
        link = host.links.get(peer.id)

        def deliver(data: bytes) -> None:
            if self.stands(peer, host.id, link):
                peer.receive_frame(data)

        if link is not None:
            self._network.send(host.name, peer.name, deliver, frame)

    def stands(self, host: WorkerProcess, peer: int, link: int | None) -> bool:
        """Whether what was sent by the peer over this connection arrives."""
        return link is not None and link not in self._broken and host.links.get(peer) == link

    def cut(self, a: int, b: int, duration_s: float, hosts: list[WorkerProcess]) -> None:
        """The processes cannot reach each other for a while."""
        self._cut_until_s[frozenset((a, b))] = self._time.now_s + duration_s
        ends = [host for host in hosts if host.process in (a, b)]
        for host in ends:
            for peer in ends:
                self._break(host, peer.id)

    def died(self, host: WorkerProcess, hosts: list[WorkerProcess]) -> None:
        """The process, or its registration, is gone."""
        for peer in hosts:
            self._break(peer, host.id)

    def _break(self, host: WorkerProcess, number: int) -> None:
        link = host.links.get(number)
        if link is None:
            return
        self._broken.add(link)

        def noticed() -> None:
            if host.links.get(number) == link:
                del host.links[number]
                host.lost(number, "the connection is broken")

        self._time.after(self._rng.random() * NOTICE_S, noticed)
