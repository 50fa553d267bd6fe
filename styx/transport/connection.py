"""A connection to an authenticated peer: payloads out, lists of payloads in, and one notice of its loss.

`send` never waits. All payloads of one pass of the event loop leave in one write, and all payloads of one read arrive
in one call of `on_frames`. A message costs no task and no future. A lost connection stays lost.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable
from typing import Final

from styx.errors import ConfigurationError
from styx.model.limits import MIB
from styx.transport.frame import FRAME_BYTES_MAX, MORE, PAYLOAD_BYTES_MAX, FrameReader, FrameTooLarge, prefix_of
from styx.transport.handshake import Hello

SEND_BUFFER_BYTES_MAX: Final = 4096 * MIB
"""Bytes that wait for the network; with more, the peer is too slow, and the connection is broken. The limit is high,
since one epoch's large arguments and results are sent at once, and their sender has them in memory anyway.
"""
WRITE_BYTES_MAX: Final = 8 * MIB
"""One write; a pass that sends more makes several."""
WRITE_FRAMES_MAX: Final = 4096
"""Frames of one write; a pass that sends more makes several."""

_PING: Final = prefix_of(0)
"""A frame without a payload, a sign of life. It is not delivered."""


class Connection(asyncio.Protocol):
    """From `listen` or `dial`; nothing is read before `start`.

    `bytes_*` include prefixes and pings, `frames_*` count payloads, `writes` and `reads` count calls.
    """

    def __init__(self, transport: asyncio.Transport, peer: Hello, received: bytes) -> None:
        self.peer = peer
        self.bytes_sent = 0
        self.bytes_received = 0
        self.frames_sent = 0
        self.frames_received = 0
        self.writes = 0
        self.reads = 0
        self._loop = asyncio.get_running_loop()
        self._transport = transport
        self._reader = FrameReader()
        self._received = received
        self._on_frames: Callable[[Connection, list[bytes]], None] | None = None
        self._on_lost: Callable[[Connection, str], None] | None = None
        self._parts: list[bytes | bytearray] = []
        self._room = 0
        self._part_bytes = 0
        self._reason: str | None = None  # why it ends; set by whatever comes first
        self._lost = False
        self._ping: asyncio.TimerHandle | None = None

    @property
    def closed(self) -> bool:
        """Whether it is lost or being closed; nothing can be sent any more."""
        return self._reason is not None

    @property
    def unsent_bytes(self) -> int:
        """Bytes that wait for the network: many if the peer does not read."""
        return self._part_bytes + (0 if self._reason is not None else self._transport.get_write_buffer_size())

    def start(
        self,
        on_frames: Callable[[Connection, list[bytes]], None],
        on_lost: Callable[[Connection, str], None],
        *,
        ping_seconds: float | None = None,
        silence_seconds: float | None = None,
    ) -> None:
        """Begins to read; called once, by the owner of the connection.

        `on_frames(connection, payloads)` is called for each read that completed frames, in order. `on_lost(connection,
        reason)` is called exactly once, also after `close` or `abort`, and never from within a call of a method here.
        With `ping_seconds` something is sent at least that often; with `silence_seconds` also, the connection is lost
        if nothing is received for that long, so the peer has to ping more often. Raises `ConfigurationError`.
        """
        quiet_ticks_max = _quiet_ticks_max(ping_seconds, silence_seconds)
        self._on_frames = on_frames
        self._on_lost = on_lost
        self._loop.call_soon(self._begin, ping_seconds, quiet_ticks_max)

    def send(self, payload: bytes | bytearray) -> None:
        """Sends one payload, of 1 to `PAYLOAD_BYTES_MAX` bytes; does nothing on a closed connection.

        A bytearray must not be changed before the loop's next pass. Raises `FrameTooLarge`, and `ValueError` for an
        empty payload.
        """
        length = len(payload)
        if not 0 < length <= PAYLOAD_BYTES_MAX:
            raise FrameTooLarge(length, PAYLOAD_BYTES_MAX) if length else ValueError("an empty payload cannot be sent")
        if self._reason is not None:
            return
        if length > FRAME_BYTES_MAX:
            self._send_in_pieces(payload)
            return
        parts = self._parts
        if not parts:
            self._schedule_write()
        elif len(parts) >= 2 * WRITE_FRAMES_MAX or self._part_bytes > WRITE_BYTES_MAX:
            self._write()
            self._schedule_write()
        self._room -= length + 4
        self._part_bytes += length
        if self._room < 0:
            self._break_as_too_slow()
            return
        parts.append(prefix_of(length))
        parts.append(payload)
        self.frames_sent += 1

    def _send_in_pieces(self, payload: bytes | bytearray) -> None:
        with memoryview(payload) as view:
            for start in range(0, len(payload), FRAME_BYTES_MAX):
                piece = bytes(view[start : start + FRAME_BYTES_MAX])
                more = MORE if start + FRAME_BYTES_MAX < len(payload) else 0
                self._write()
                self._schedule_write()
                self._room -= len(piece) + 4
                if self._room < 0:
                    self._break_as_too_slow()
                    return
                self._parts += [prefix_of(len(piece) | more), piece]
        self.frames_sent += 1

    def _break_as_too_slow(self) -> None:
        self._break(f"it is too slow: over {SEND_BUFFER_BYTES_MAX} bytes wait to be sent")

    def close(self) -> None:
        """Ends the connection after all payloads have been sent."""
        if self._reason is None:
            self._write()
            self._reason = "closed here"
            self._received = b""
            self._transport.close()

    def abort(self, reason: str = "aborted here") -> None:
        """Ends the connection at once; payloads that wait are lost."""
        self._break(reason)

    def _schedule_write(self) -> None:
        self._room = SEND_BUFFER_BYTES_MAX - self._transport.get_write_buffer_size()
        self._loop.call_soon(self._write)

    def _write(self) -> None:
        parts = self._parts
        if not parts or self._reason is not None:
            return
        data = b"".join(parts)
        parts.clear()
        self._part_bytes = 0
        self.bytes_sent += len(data)
        self.writes += 1
        self._transport.write(data)

    def _break(self, reason: str) -> None:
        if self._reason is None:
            self._reason = reason
        self._received = b""
        self._parts.clear()
        self._transport.abort()

    def _begin(self, ping_seconds: float | None, quiet_ticks_max: float) -> None:
        received, self._received = self._received, b""
        if received:
            self._receive(received)
        if self._lost:
            self._tell_lost()
        elif not self._transport.is_closing():
            self._transport.resume_reading()
            if ping_seconds is not None:
                self._tick(ping_seconds, quiet_ticks_max, 0, (-1, -1))

    def _tick(self, ping_seconds: float, quiet_ticks_max: float, quiet_ticks: int, seen: tuple[int, int]) -> None:
        """Pings if nothing was sent since the last tick, and counts the ticks in which nothing came.

        It counts ticks and measures no time: a process that stood still for long has missed ticks, and reads what has
        come meanwhile before the next tick.
        """
        if self._reason is not None:
            return
        quiet_ticks = quiet_ticks + 1 if self.bytes_received == seen[1] else 0
        if quiet_ticks >= quiet_ticks_max:
            self._break(f"nothing came from it for {quiet_ticks * ping_seconds:g} s")
            return
        if self.bytes_sent == seen[0] and not self._parts:
            self._transport.write(_PING)
            self.bytes_sent += len(_PING)
        seen = (self.bytes_sent, self.bytes_received)
        self._ping = self._loop.call_later(ping_seconds, self._tick, ping_seconds, quiet_ticks_max, quiet_ticks, seen)

    def _receive(self, data: bytes) -> None:
        self.reads += 1
        self.bytes_received += len(data)
        try:
            frames = self._reader.feed(data)
        except FrameTooLarge as error:
            self._break(f"it broke the protocol: {error}")
            return
        if not all(frames):
            frames = [frame for frame in frames if frame]
        if frames:
            self.frames_received += len(frames)
            self._deliver(frames)

    def _deliver(self, frames: list[bytes]) -> None:
        assert self._on_frames is not None
        try:
            self._on_frames(self, frames)
        except BaseException as error:
            # A message is lost, so the connection must not go on. The event loop reports the error.
            self._break(f"its messages could not be handled: {type(error).__name__}: {error}")
            raise

    # Called by the transport only.

    def data_received(self, data: bytes) -> None:
        if self._reason is None:
            self._receive(data)

    def connection_lost(self, exc: Exception | None) -> None:
        if self._reason is None:
            self._reason = _reason_of(exc, self._reader.incomplete)
        self._parts.clear()
        self._lost = True
        if self._ping is not None:
            self._ping.cancel()
        self._tell_lost()

    def _tell_lost(self) -> None:
        if self._on_lost is not None and self._reason is not None:
            on_lost, self._on_lost = self._on_lost, None
            on_lost(self, self._reason)


def _reason_of(error: Exception | None, incomplete: bool) -> str:
    if error is not None:
        return f"{type(error).__name__}: {error}"
    return "closed by the peer in the middle of a frame" if incomplete else "closed by the peer"


def _quiet_ticks_max(ping_seconds: float | None, silence_seconds: float | None) -> float:
    if ping_seconds is not None and not ping_seconds > 0:
        raise ConfigurationError(f"ping_seconds must be above 0, got {ping_seconds}")
    if silence_seconds is None:
        return math.inf
    if ping_seconds is None or silence_seconds < 2 * ping_seconds:
        raise ConfigurationError(
            f"silence_seconds ({silence_seconds}) must be at least twice ping_seconds ({ping_seconds})"
        )
    return math.ceil(silence_seconds / ping_seconds)
