"""A workload: what the driver needs to know of an application that it puts under load. Never sends or measures.

One instance lives in the parent process, which loads the data and audits at the end; each client process makes its own
from the same options, draws its requests from it and tells it every outcome. What the clients' instances have
witnessed is merged in the parent before the audit.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple, Protocol

from styx.client.base import Client
from styx.messages import Reply
from styx.model.app import App
from styx.model.operator import Operator


class Planned(NamedTuple):
    """A request before it is sent: what a client's `submit` takes. `kind` names it in the results."""

    kind: str
    operator: Operator
    key: Any
    function: str
    arguments: tuple[Any, ...]


class Loading(NamedTuple):
    """One operator's initial state, for `Client.load`; `size` is the number of pairs, for the progress line."""

    operator: Operator
    size: int
    pairs: Iterable[tuple[Any, Any]]


class Audit(NamedTuple):
    """What the audit looked at, in words for people; it holds if there are no `violations`."""

    checked: list[str]
    violations: list[str]


class Generator(Protocol):
    """One client process's source of requests, and witness of what became of them."""

    def next(self) -> Planned:
        """The next request; cheap, for it runs inside of the send loop."""

    def answered(self, planned: Planned, reply: Reply) -> None:
        """The reply, committed or not; called once a request."""

    def unknown(self, planned: Planned) -> None:
        """No reply came: the request may have committed."""

    def witness(self) -> Any:
        """What the audit needs of all this; plain data, msgpack-encodable and small beside the replies."""


class Workload(Protocol):
    """`app` is what the deployment runs, as `MODULE:APP` in `app_target` for processes of their own.

    `settings` are the options it was made with, as they stand in the result file.
    """

    name: str
    app: App
    app_target: str
    settings: dict[str, Any]

    def initial(self) -> Iterable[Loading]:
        """The data set, generated as it is read."""

    def generator(self, client: int, clients: int, seed: int) -> Generator:
        """The source for client process `client` of `clients`; the same arguments give the same requests."""

    async def audit(self, client: Client, witnesses: list[Any]) -> Audit:
        """Compares the state that requests now read with what the witnesses have seen."""
