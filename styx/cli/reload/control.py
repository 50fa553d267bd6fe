"""Messages between the watching process and a version's process: JSON lines over a socket pair."""

from __future__ import annotations

import socket
from typing import Final, Literal

import msgspec

VARIABLE: Final = "STYX_RELOAD_SOCKETS"
"""Tells a version's process its inherited sockets: `CONTROL,LISTENER`, as file descriptors."""
LINE_BYTES_MAX: Final = 4 * 1024 * 1024
CHUNK_BYTES: Final = 65_536


class Order(msgspec.Struct):
    """To a version's process: `import` the app; `serve`; `release` data and socket, in order; `end`, in order.

    `first`: nothing was served before, so the version prints all its lines.
    """

    do: Literal["import", "serve", "release", "end"]
    first: bool = False


class News(msgspec.Struct):
    """From a version's process.

    `imported` with the directories of its files; `failed` to import, with `text`; `serving`; `refused` to serve, with
    `text`, and nothing is open; `released`.
    """

    what: Literal["imported", "failed", "serving", "refused", "released"]
    text: str = ""
    directories: list[str] = []


_encode = msgspec.json.Encoder().encode
_order = msgspec.json.Decoder(Order).decode
_news = msgspec.json.Decoder(News).decode


def line_of(message: Order | News) -> bytes:
    """A message as a line."""
    return _encode(message) + b"\n"


def news_of(line: bytes) -> News:
    """The message in a line from a version's process."""
    return _news(line)


class Orders:
    """A version's end of the pair. It waits for one order at a time; `end` stands for a watcher that is gone."""

    def __init__(self, control: socket.socket) -> None:
        self.control = control
        self._read = b""

    def tell(self, news: News) -> None:
        """Sends a message; it is lost if the watcher is gone."""
        try:
            self.control.sendall(line_of(news))
        except OSError:
            pass

    def wait(self) -> Order:
        """The next order; blocks."""
        while b"\n" not in self._read:
            try:
                chunk = self.control.recv(CHUNK_BYTES)
            except OSError:
                chunk = b""
            if not chunk:
                return Order("end")
            self._read += chunk
        line, _, self._read = self._read.partition(b"\n")
        return _order(line)
