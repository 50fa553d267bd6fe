"""A request on its direct way (`direct.py`), and how it is answered: in one write."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import unquote

from uvicorn.protocols.http.httptools_impl import STATUS_LINE

from styx.http.asgi import CLOSE

if TYPE_CHECKING:
    from styx.http.connection import HttpConnection

Headers = list[tuple[bytes, bytes]]

_log = logging.getLogger("styx.http")


class DirectRequest:
    """A request of HTTP/1.1 on its direct way. `also` are headers of its answer besides those of who answers.

    `by_name` has its headers once more, and `client_is` who has sent it, if who takes it has put them there.
    `answered` are called with the status and the body of its answer. `cancelled`, if it is set, is called in place of
    an answer when the server's grace period is over.
    """

    __slots__ = (
        "also",
        "answered",
        "body",
        "by_name",
        "cancelled",
        "client_is",
        "connection",
        "headers",
        "keep_alive",
        "method",
        "target",
    )

    def __init__(
        self, connection: HttpConnection, method: bytes, target: bytes, headers: Headers, keep_alive: bool
    ) -> None:
        self.connection: Final = connection
        self.method = method
        self.target = target
        self.headers = headers
        self.keep_alive = keep_alive
        self.body = b""
        self.also: Iterable[tuple[bytes, bytes]] = ()
        self.by_name: dict[bytes, bytes] = {}
        self.client_is: object = None
        self.answered: tuple[Callable[[int, bytes], None], ...] = ()
        self.cancelled: Callable[[], None] | None = None

    def scope(self) -> dict[str, Any]:
        """What ASGI would say of it."""
        connection = self.connection
        sent, _, query = self.target.partition(b"?")
        return {
            "type": "http",
            "http_version": "1.1",
            "method": self.method.decode("ascii"),
            "scheme": connection.scheme,
            "path": unquote(sent.decode("ascii")),
            "raw_path": sent,
            "query_string": query,
            "headers": self.headers,
            "client": connection.client,
        }

    def answer(self, status: int, headers: Headers, body: bytes) -> None:
        """Sends the answer, which has its length among `headers`, in one write. Never raises.

        A client that is gone gets none. With `Connection: close` among the headers it is the connection's last.
        """
        connection = self.connection
        connection.tasks.discard(self)
        try:
            for told in self.answered:
                told(status, body)
            ends = () if self.keep_alive or CLOSE in headers else (CLOSE,)
            self.keep_alive = self.keep_alive and CLOSE not in headers
            transport = connection.transport
            if not transport.is_closing():
                lines = [STATUS_LINE[status]]
                for name, value in (*connection.server_state.default_headers, *headers, *self.also, *ends):
                    lines += (name, b": ", value, b"\r\n")
                lines += (b"\r\n", body)
                transport.write(b"".join(lines))
                if not self.keep_alive:
                    transport.close()
            connection.on_response_complete()
        except Exception:  # noqa: BLE001 - logged; the caller may be an engine in the middle of its work
            _log.exception("an answer could not be sent")
            connection.transport.abort()

    def cancel(self, msg: Any = None) -> bool:
        """As a task's, for the server, which ends what is under way after its grace period."""
        if self.cancelled is not None:
            # Not at once: the server goes through its tasks.
            self.connection.loop.call_soon(self.cancelled)
        return True
