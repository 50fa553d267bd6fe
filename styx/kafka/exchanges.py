"""Requests to a broker and its answers, over a connection that aiokafka has made: as bytes, without streams and tasks.

aiokafka connects, logs in and learns the broker's versions. Its streams then take a task, a timer and several turns of
the event loop for each answer. Here an answer is taken in the turn in which its last byte comes, and one timer watches
all requests. What aiokafka itself sends over the connection is answered as before.
"""

from __future__ import annotations

import asyncio
import time
from typing import Any, Final

from aiokafka.conn import CloseReason
from aiokafka.errors import KafkaConnectionError

from styx.kafka.wire import Encoded, number_of
from styx.transport.frame import MORE, FrameReader

ANSWER_BYTES_MAX: Final = MORE - 1
"""Of one answer: Kafka's limit, since a fetch asks for as much as it wants."""
QUIET_TICKS_MAX: Final = 3
"""A connection is given up when so many ticks have passed without an answer, while one was awaited."""


class Exchanges(asyncio.Protocol):
    """Takes a connection over, on which nothing is under way. A request waits for its answer for `patience_s` at least.

    It counts ticks and measures no time: a loop that stood still for long reads what has come before the next tick.
    """

    def __init__(self, connection: Any, patience_s: float) -> None:
        assert not connection._requests, "a request is under way"
        self._loop = asyncio.get_running_loop()
        self._connection: Any = connection
        self._streams = connection._protocol
        self._transport = connection._writer.transport
        self._client_id = connection._client_id
        self._frames = FrameReader(ANSWER_BYTES_MAX)
        self._tick_s = patience_s / QUIET_TICKS_MAX
        self._answers = self._answers_seen = self._quiet_ticks = 0
        connection._read_task.cancel()
        self._transport.set_protocol(self)
        self._timer = self._loop.call_later(self._tick_s, self._tick)

    def of(self, connection: Any) -> bool:
        """Whether it is this connection's, and can be used."""
        return self._connection is connection and self.open

    @property
    def open(self) -> bool:
        """Whether requests can be sent."""
        return self._connection is not None and not self._transport.is_closing()

    def ask(self, request: Any) -> asyncio.Future[Any]:
        """Sends a request; the future gives the answer, or raises `KafkaConnectionError`.

        The broker may have acted on a request without an answer.
        """
        connection = self._connection
        if connection is None or self._transport.is_closing():
            raise KafkaConnectionError("the connection is closed")
        prepared = request.prepare(connection._versions)
        number = connection._next_correlation_id()
        if type(prepared) is Encoded:
            message = prepared.message(number, self._client_id)
        else:
            header = prepared.build_request_header(correlation_id=number, client_id=self._client_id)
            body = header.encode() + prepared.encode()
            message = len(body).to_bytes(4, "big") + body
        self._transport.write(message)
        future: asyncio.Future[Any] = self._loop.create_future()
        connection._requests.append((number, prepared, future))
        return future

    def _take(self, frame: bytes) -> None:
        connection = self._connection
        number, prepared, future = connection._requests[0]
        if type(prepared) is not Encoded:
            connection._handle_frame(frame)
        elif number_of(frame) != number:
            connection.close(reason=CloseReason.OUT_OF_SYNC)
        else:
            answer = prepared.answer(frame)
            connection._requests.popleft()
            connection._last_action = time.monotonic()
            if not future.done():
                future.set_result(answer)
        self._answers += 1

    def _tick(self) -> None:
        connection = self._connection
        if connection is None:
            return
        waits = bool(connection._requests) and self._answers == self._answers_seen
        self._quiet_ticks = self._quiet_ticks + 1 if waits else 0
        self._answers_seen = self._answers
        if self._quiet_ticks > QUIET_TICKS_MAX:
            connection.close(reason=CloseReason.CONNECTION_TIMEOUT)
        else:
            self._timer = self._loop.call_later(self._tick_s, self._tick)

    # Called by the transport only.

    def data_received(self, data: bytes) -> None:
        try:
            for frame in self._frames.feed(data):
                if not self.open:
                    return
                self._take(frame)
        except Exception as error:  # noqa: BLE001 - whatever the bytes of a broken broker make of their reader
            self._connection.close(reason=CloseReason.CONNECTION_BROKEN, exc=error)

    def eof_received(self) -> bool:
        self._streams.eof_received()
        return False

    def pause_writing(self) -> None:
        self._streams.pause_writing()

    def resume_writing(self) -> None:
        self._streams.resume_writing()

    def connection_lost(self, exc: Exception | None) -> None:
        self._timer.cancel()
        connection, self._connection = self._connection, None
        self._streams.connection_lost(exc)
        connection.close(reason=CloseReason.CONNECTION_BROKEN, exc=exc)
