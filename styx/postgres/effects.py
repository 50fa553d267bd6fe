"""What a session asks of the connection that drives it. A session is a generator: it yields one of these, and gets the
answer; an `SqlError` that is thrown into it is the answer of a query that failed.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import dataclass
from typing import Any, NamedTuple

from styx.postgres.scram import Verifier
from styx.query.service import Asked


class Receive(NamedTuple):
    """The next bytes of the client; none, `b""`, if it has left."""


class Send(NamedTuple):
    """Bytes for the client. They may be kept back until the next `Receive`, `Open` or `Next`."""

    data: bytes


class StartTls(NamedTuple):
    """From here on the connection is encrypted; no bytes have come ahead."""


class Authenticated(NamedTuple):
    """The client has proved who it is."""

    user: str


class CancelQuery(NamedTuple):
    """Another connection, whose key this is, wants its query ended."""

    pid: int
    secret: bytes


class Open(NamedTuple):
    """Begins a query. The answer is the `Answer` of the service without its rows: its epoch and its columns' schema.

    `number`: the session's for it. `seconds`: how long it may take at most, None for what the server allows.
    """

    number: int
    asked: Asked
    seconds: float | None


class Next(NamedTuple):
    """The next rows of a query, a batch; None behind the last."""

    number: int


class Stop(NamedTuple):
    """Ends a query, whether all its rows were taken or not."""

    number: int


Effect = Receive | Send | StartTls | Authenticated | CancelQuery | Open | Next | Stop
Steps = Generator[Effect, Any, Any]


@dataclass(frozen=True)
class Opening:
    """What a session is given at its beginning.

    `pid` and `secret`: its key, with which another connection can cancel its queries; 32 bytes of chance. `nonce`:
    printable chance. `verifier_of`: for any name. `tls`: whether the port offers TLS, and so requires it.
    `certificate_hash`: of its certificate, for channel binding; None where it is not offered.
    """

    pid: int
    secret: bytes
    nonce: str
    verifier_of: Callable[[str], Verifier]
    tls: bool = False
    certificate_hash: bytes | None = None
