"""Framing: the boundaries of messages in a stream of bytes. A frame is the payload's length in four bytes, most
significant first, and the payload. A payload longer than the largest frame takes several frames; in all but the last
one the highest bit of the length is set.

Memory grows with the bytes received, never with a length that a peer only announces.
"""

from __future__ import annotations

import io
import struct
from typing import Final

from styx.errors import StyxError
from styx.model.limits import KIB, MIB

FRAME_BYTES_MAX: Final = 16 * MIB
"""One frame, once the peer is authenticated."""
PAYLOAD_BYTES_MAX: Final = 2048 * MIB
"""One payload, in any number of frames."""
UNAUTHENTICATED_FRAME_BYTES_MAX: Final = 4 * KIB
"""One payload of a handshake."""

MORE: Final = 1 << 31
"""The bit of a prefix for a payload that goes on in the next frame."""

_PREFIX: Final = struct.Struct(">I")
_PREFIX_BYTES: Final = _PREFIX.size

prefix_of = _PREFIX.pack
"""The prefix for a payload of this many bytes."""
_length_at = _PREFIX.unpack_from


class FrameTooLarge(StyxError):
    """A frame is longer than its connection allows."""

    def __init__(self, length: int, frame_bytes_max: int) -> None:
        super().__init__(f"a frame of {length} bytes is over the limit of {frame_bytes_max} bytes")


class FrameReader:
    """Payloads from a stream that arrives in pieces of any size."""

    def __init__(self, frame_bytes_max: int = FRAME_BYTES_MAX) -> None:
        self._frame_bytes_max = frame_bytes_max
        # Either a part of a prefix, or a part of a payload with at least one byte missing; never both.
        self._prefix = b""
        self._payload = io.BytesIO()
        self._missing = 0
        # The earlier frames of a payload in several frames, and whether the payload goes on behind the present frame.
        self._pieces: list[bytes] = []
        self._more = False

    @property
    def incomplete(self) -> bool:
        """Whether a frame has begun and not ended."""
        return self._missing > 0 or self._prefix != b"" or bool(self._pieces)

    def feed(self, data: bytes) -> list[bytes]:
        """The payloads that `data` completes, in order.

        Raises `FrameTooLarge` at the prefix. The stream cannot be read on, and payloads completed by the same data are
        lost.
        """
        frames: list[bytes] = []
        position = 0
        if self._missing:
            position = self._continue(data, frames)
        elif self._prefix:
            data = self._prefix + data
        end = len(data)
        while end - position >= _PREFIX_BYTES:
            (length,) = _length_at(data, position)
            if length > self._frame_bytes_max:
                length = self._of_many(length)
            start = position + _PREFIX_BYTES
            position = start + length
            if position > end:
                self._prefix = b""
                self._missing = position - end
                self._payload.write(data[start:])
                return frames
            if self._more or self._pieces:
                self._piece(data[start:position], frames)
            else:
                frames.append(data[start:position])
        self._prefix = data[position:]
        return frames

    def _continue(self, data: bytes, frames: list[bytes]) -> int:
        """Adds to the payload that began earlier; gives the number of bytes used."""
        used = data[: self._missing]
        self._payload.write(used)
        self._missing -= len(used)
        if not self._missing:
            # BytesIO grows in place, and `getvalue` does not copy.
            whole = self._payload.getvalue()
            self._payload = io.BytesIO()
            if self._more or self._pieces:
                self._piece(whole, frames)
            else:
                frames.append(whole)
        return len(used)

    def _of_many(self, prefix: int) -> int:
        """The length in a prefix over the limit: of a frame with others behind it. Else raises `FrameTooLarge`."""
        length = prefix & ~MORE
        if prefix == length or not 0 < length <= self._frame_bytes_max:
            raise FrameTooLarge(length, self._frame_bytes_max)
        self._more = True
        return length

    def _piece(self, frame: bytes, frames: list[bytes]) -> None:
        self._pieces.append(frame)
        if self._more:
            self._more = False
            if sum(map(len, self._pieces)) > PAYLOAD_BYTES_MAX:
                raise FrameTooLarge(PAYLOAD_BYTES_MAX + 1, PAYLOAD_BYTES_MAX)
        else:
            pieces, self._pieces = self._pieces, []
            frames.append(b"".join(pieces))


def take_frame(received: bytearray, frame_bytes_max: int) -> bytes | None:
    """Removes and returns the first payload in `received`; None while it is incomplete. Raises `FrameTooLarge`.

    For handshakes: the bytes behind their last frame belong to the `Connection`.
    """
    if len(received) < _PREFIX_BYTES:
        return None
    (length,) = _length_at(received)
    if length > frame_bytes_max:
        raise FrameTooLarge(length, frame_bytes_max)
    end = _PREFIX_BYTES + length
    if len(received) < end:
        return None
    payload = bytes(received[_PREFIX_BYTES:end])
    del received[:end]
    return payload
