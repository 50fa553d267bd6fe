"""A workload: the driver's interface to an application under load.

One instance lives in the parent process, which loads the data and audits at the end; each client process makes its own
from the same options, draws its requests from it and tells it every outcome. The parent merges the witnesses of all
clients before the audit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple, Protocol

from styx.client.base import Client
from styx.messages import Reply
from styx.model.app import App
from styx.model.operator import Operator
from styx.relational.table import Table


class SqlQuery(NamedTuple):
    """A query to a replica: its text, the values of `$1` and so on, and what makes the function's result, as a client
    has it, of the result's rows.
    """

    sql: str
    parameters: tuple[Any, ...]
    result: Callable[[list[dict[str, Any]]], Any]


class Planned(NamedTuple):
    """A request before it is sent, with the arguments of a client's `submit`. `kind` is its name in results.

    `step`: it is no transaction of the workload, but prepares one that follows it, as items are put into a cart before
    it is bought. Its latencies are kept apart; it counts among the outcomes only if it does not commit. `note` is for
    the generator alone. `outside`: a read-only function that is read outside the log, by the client's `read_request`.
    `query`: a replica is asked this instead of the function.
    """

    kind: str
    operator: Operator
    key: Any
    function: str
    arguments: tuple[Any, ...]
    step: bool = False
    note: Any = None
    outside: bool = False
    query: SqlQuery | None = None


class Loading(NamedTuple):
    """One operator's initial state, or the initial rows of one of its tables; `size` is the number of pairs, for the
    progress line. A pair is an entity's key, and its state or one of its rows.
    """

    operator: Operator
    size: int
    pairs: Iterable[tuple[Any, Any]]
    table: Table | None = None

    @property
    def name(self) -> str:
        """The table's or operator's."""
        return self.operator.name if self.table is None else self.table.name


class Audit(NamedTuple):
    """A description of the audited state. The audit holds if `violations` is empty."""

    checked: list[str]
    violations: list[str]


class NobodyIsFree(Exception):
    """There is no request now, because all in whose name one could be sent wait for replies. `Generator.next` raises
    it.
    """


class Generator(Protocol):
    """The source of one client process's requests, and the witness of their outcomes."""

    def next(self) -> Planned:
        """The next request. It must be cheap, because it runs in the send loop. Raises `NobodyIsFree`."""

    def answered(self, planned: Planned, reply: Reply) -> Iterable[Planned] | None:
        """Takes the reply, committed or not; called once for each request. Gives the requests that follow it at once,
        if there are any. They are due now, and belong to the window if this one does.
        """

    def unknown(self, planned: Planned) -> None:
        """No reply came: the request may have committed."""

    def witness(self) -> Any:
        """The data for the audit: plain, msgpack-encodable, and small beside the replies."""


class Workload(Protocol):
    """`app` is the app that the deployment runs. `app_target` names it as `MODULE:APP` for other processes. `settings`
    are the workload's options, as in the result file.
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
        """Reads the state by requests, and compares it with the witnesses."""
