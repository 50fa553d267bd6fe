"""Connections to the other workers of the generation: one for each pair, dialled by the worker with the lower number.

A broken connection is reported once and never repaired within its generation: frames on their way are lost, and only
the recovery of a new generation replaces them.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable
from typing import Final

from styx.cluster.wire import WORKER
from styx.transport import Connection, Hello, Security, dial

CONNECT_SECONDS_MAX: Final = 3.0
"""How long a new generation's workers try to reach each other."""
DIAL_SECONDS_MAX: Final = 1.0
RETRY_SECONDS: Final = 0.05
PING_SECONDS: Final = 0.25
_log = logging.getLogger("styx.worker")


def address_of(host_and_port: str, incarnation: str) -> str:
    """The address that the coordinator gives to the peers: where a worker listens, and its incarnation."""
    return f"{host_and_port}/{incarnation}"


class Unreachable(OSError):
    """A peer could not be reached in time; `peer` is its number."""

    def __init__(self, peer: int, reason: str) -> None:
        super().__init__(f"worker {peer} cannot be reached: {reason}")
        self.peer = peer


class Peers:
    """The connections of one worker. `arrived(peer, payloads)` gets messages, in each peer's order. `lost(peer,
    reason)` is called once if a member's connection is lost.

    A peer that is silent for longer than `silence_seconds` is lost. The time is long, because a function may hold up
    the peer. The coordinator decides whether a worker lives, and the operating system notices dead connections.
    """

    def __init__(
        self,
        security: Security,
        hello: Callable[[int], Hello],
        arrived: Callable[[int, list[bytes]], None],
        lost: Callable[[int, str], None],
        silence_seconds: float,
    ) -> None:
        self._security = security
        self._hello = hello
        self._arrived = arrived
        self._lost = lost
        self._silence_seconds = silence_seconds
        self._connections: dict[int, Connection] = {}
        self._members: frozenset[int] = frozenset()
        self._changed = asyncio.Event()

    def accept(self, connection: Connection) -> None:
        """Takes the connection of a worker that has dialled this one."""
        number = connection.peer.facts.get("worker", "")
        if connection.peer.role != WORKER or not number.isdigit():
            connection.abort("it is no worker of this cluster")
            return
        self._take(int(number), connection)

    async def connect(self, me: int, addresses: dict[int, str]) -> None:
        """Connects to all other members; live connections of before are kept. Returns when all are connected.

        Raises `Unreachable` for the first peer that is not reached in time.
        """
        self._members = frozenset(addresses) - {me}
        for number in set(self._connections) - self._members:
            self._connections.pop(number).close()
        deadline_s = asyncio.get_running_loop().time() + CONNECT_SECONDS_MAX
        higher = [number for number in self._members if number > me]
        await asyncio.gather(*(self._dial(number, me, addresses[number], deadline_s) for number in higher))
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout_at(deadline_s):
                while not self._members <= self._connections.keys():
                    self._changed.clear()
                    await self._changed.wait()
        for number in sorted(self._members - self._connections.keys()):
            raise Unreachable(number, f"it did not connect within {CONNECT_SECONDS_MAX:g} s")

    def send(self, peer: int, payload: bytes) -> None:
        """Sends a message. Does nothing if the connection is lost, because `lost` has been called already."""
        connection = self._connections.get(peer)
        if connection is not None:
            connection.send(payload)

    def close(self) -> None:
        """Ends all connections, without calling `lost`."""
        self._members = frozenset()
        for connection in self._connections.values():
            connection.abort("the worker registers anew")
        self._connections.clear()

    async def _dial(self, number: int, me: int, address: str, deadline_s: float) -> None:
        loop = asyncio.get_running_loop()
        where, _, incarnation = address.rpartition("/")
        reason = "no attempt"
        while number not in self._connections:
            if loop.time() >= deadline_s:
                raise Unreachable(number, reason)
            try:
                connection = await dial(where, self._security, self._hello(me), DIAL_SECONDS_MAX)
            except OSError as error:
                reason = str(error)
                await asyncio.sleep(RETRY_SECONDS)
                continue
            if connection.peer.incarnation != incarnation:
                connection.abort("another process answers at this address")
                raise Unreachable(number, f"another process answers at {where}")
            self._take(number, connection)

    def _take(self, number: int, connection: Connection) -> None:
        before = self._connections.get(number)
        self._connections[number] = connection
        if before is not None:
            before.abort("the worker has connected anew")
            self._report(number, before, "it has connected anew")
        connection.start(
            lambda _, payloads: self._arrived(number, payloads),
            lambda which, reason: self._gone(number, which, reason),
            ping_seconds=PING_SECONDS,
            silence_seconds=self._silence_seconds,
        )
        self._changed.set()

    def _gone(self, number: int, connection: Connection, reason: str) -> None:
        if self._connections.get(number) is connection:
            del self._connections[number]
            self._report(number, connection, reason)

    def _report(self, number: int, connection: Connection, reason: str) -> None:
        if number in self._members:
            _log.warning("the connection to worker %s is broken: %s", connection.peer.name, reason)
            self._lost(number, reason)
