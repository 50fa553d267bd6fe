"""A gateway's connection to one worker, for reads outside the log and for the changes of its epochs."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine
from itertools import count
from typing import Any, Final

from styx.cluster.wire import answers_hears, encode
from styx.errors import ConfigurationError
from styx.protocol.changes import ChangesGiven, FollowAsked, FollowLeft, FollowOver, FollowTaken
from styx.protocol.reads import ReadAnswered, ReadAsked, ReadDropped
from styx.transport import Connection

PING_SECONDS: Final = 0.25

_log = logging.getLogger("styx.gateway")


class Following:
    """The changes of one worker for one follower. `heard` is called with what comes, and with None if the connection is
    lost.
    """

    def __init__(
        self, link: WorkerLink, number: int, heard: Callable[[ChangesGiven | FollowOver | None], None]
    ) -> None:
        self.heard = heard
        self._link = link
        self._number = number

    def taken(self, messages: int) -> None:
        """So many messages with changes were taken."""
        self._link.send(FollowTaken(self._number, messages))

    def leave(self) -> None:
        """Nothing more is wanted."""
        if self._link.forget(self._number):
            self._link.send(FollowLeft(self._number))


class WorkerLink:
    """From the moment it is dialled. A lost one stays lost."""

    def __init__(self, dialling: Coroutine[Any, Any, Connection], silence_seconds: float) -> None:
        self.lost = False
        self._silence_seconds = silence_seconds
        self._connection: Connection | None = None
        self._waiting: dict[int, asyncio.Future[ReadAnswered | None]] = {}
        self._following: dict[int, Following] = {}
        self._numbers = count()
        self._ready = asyncio.get_running_loop().create_task(self._open(dialling))

    async def _open(self, dialling: Coroutine[Any, Any, Connection]) -> None:
        try:
            connection = await dialling
        except (OSError, ConfigurationError) as error:  # certificates may be about to be replaced
            _log.debug("a worker cannot be reached for reads: %s", error)
            self.lost = True
            return
        self._connection = connection
        connection.start(
            self._hear, lambda *_: self._lost(), ping_seconds=PING_SECONDS, silence_seconds=self._silence_seconds
        )

    @property
    def bytes_received(self) -> int:
        """Signs of life are among them."""
        return 0 if self._connection is None else self._connection.bytes_received

    def close(self) -> None:
        """Ends the connection, and whoever waits for an answer asks again."""
        self._ready.cancel()
        if self._connection is not None:
            self._connection.abort("the gateway does not read there any more")
        self._lost()

    async def ask(self, message: Callable[[int], ReadAsked]) -> ReadAnswered | None:
        """The worker's answer to a read, which is made with the number given; None if the worker is lost."""
        await asyncio.wait([self._ready])
        if self.lost or self._connection is None:
            return None
        number = next(self._numbers)
        future: asyncio.Future[ReadAnswered | None] = asyncio.get_running_loop().create_future()
        self._waiting[number] = future
        self.send(message(number))
        try:
            return await future
        except asyncio.CancelledError:
            self.send(ReadDropped(number))
            raise
        finally:
            self._waiting.pop(number, None)

    async def follow(
        self, message: Callable[[int], FollowAsked], heard: Callable[[ChangesGiven | FollowOver | None], None]
    ) -> Following | None:
        """Follows the worker's changes; `message` is made with the number given. None if the worker is lost."""
        await asyncio.wait([self._ready])
        if self.lost or self._connection is None:
            return None
        number = next(self._numbers)
        following = self._following[number] = Following(self, number, heard)
        self.send(message(number))
        return following

    def forget(self, number: int) -> bool:
        """Nobody follows under this number any more; whether somebody did."""
        return self._following.pop(number, None) is not None

    def send(self, message: ReadAsked | ReadDropped | FollowAsked | FollowLeft | FollowTaken) -> None:
        """Sends a message; on a lost connection it goes nowhere."""
        if self._connection is not None:
            self._connection.send(encode(message))

    def _hear(self, _: Connection, payloads: list[bytes]) -> None:
        for payload in payloads:
            answer = answers_hears.decode(payload)
            if isinstance(answer, ReadAnswered):
                future = self._waiting.get(answer.id)
                if future is not None and not future.done():
                    future.set_result(answer)
            else:
                following = self._following.get(answer.id)
                if following is not None:
                    following.heard(answer)

    def _lost(self) -> None:
        self.lost = True
        for future in self._waiting.values():
            if not future.done():
                future.set_result(None)
        following, self._following = self._following, {}
        for each in following.values():
            each.heard(None)
