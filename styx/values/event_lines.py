"""Server-sent events, as a gateway writes them and its clients read them: blocks of lines, each ended by an empty line.

Only what a gateway writes is read: fields with one blank behind the colon, lines that end with a line feed.
"""

from __future__ import annotations

from typing import Final, NamedTuple

BLOCK_BYTES_MAX: Final = 4 * 1024 * 1024
"""One event; a server that sends more is no gateway."""
HEARTBEAT: Final = b":\n\n"
"""A comment that keeps a connection open."""
ERROR: Final = "error"
"""The name of the block with which a stream ends before its end."""

_BLOCK_END: Final = b"\n\n"


class Block(NamedTuple):
    """One server-sent event; `name` is empty for a usual one, `id` is None without one, `data` is None for no event."""

    id: str | None
    name: str
    data: bytes | None


def block(id: str | None, data: bytes | None, name: str = "") -> bytes:
    """The bytes of one; `data` is one line."""
    lines = b""
    if id is not None:
        lines += b"id: %b\n" % id.encode()
    if name:
        lines += b"event: %b\n" % name.encode()
    if data is not None:
        lines += b"data: %b\n" % data
    return lines + b"\n"


class BlockReader:
    """Takes bytes as they come and gives whole blocks, of `bytes_max` at most. Raises `ValueError` for what no gateway
    sends.
    """

    def __init__(self, bytes_max: int = BLOCK_BYTES_MAX) -> None:
        self._bytes_max = bytes_max
        self._left = b""

    def take(self, data: bytes) -> list[Block]:
        """The blocks that end in these bytes."""
        *blocks, self._left = (self._left + data).split(_BLOCK_END)
        if len(self._left) > self._bytes_max:
            raise ValueError(f"a server-sent event of more than {self._bytes_max} bytes")
        return [found for each in blocks if (found := _parsed(each)) is not None]


def _parsed(text: bytes) -> Block | None:
    """None for a comment alone."""
    fields: dict[bytes, bytes] = {}
    for line in text.split(b"\n"):
        name, _, value = line.partition(b": ")
        if name and not name.startswith(b":"):
            fields[name] = value
    if not fields:
        return None
    given = fields.get(b"id")
    return Block(None if given is None else given.decode(), fields.get(b"event", b"").decode(), fields.get(b"data"))
