"""A small run of TPC-C that needs no engine: the app's own functions, one request after the other, on a dictionary.

What an audit reads of it, and what clients were told, can be falsified row by row and reply by reply. Two warehouses of
30 customers a district, all five transactions; in the end all orders of warehouse 1 are delivered, and Deliveries find
none there. It is made once, in some tenths of a second.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from functools import cache
from typing import Any, NamedTuple

import msgspec

from benchmarks.driver.workload import Audit, Loading, Planned
from benchmarks.tpcc import tables
from benchmarks.tpcc.app import app
from benchmarks.tpcc.audit import audit
from benchmarks.tpcc.generator import TerminalGenerator
from benchmarks.tpcc.population.whole import initial
from benchmarks.tpcc.settings import Settings
from benchmarks.tpcc.streams import stream
from benchmarks.tpcc.witness import Witness
from styx import App
from styx.client.base import Client, FunctionLike, KeyLike, OperatorLike
from styx.client.load import LoadTarget
from styx.messages import Reply, ReplyError, Request
from styx.testing.serial import SerialReference
from styx.values.codec import decode_plain

SETTINGS = Settings(warehouses=2, items=40, customers=30, remote_item=0.1, rollback=0.1, by_name=0.5)
REQUESTS = 300
DELIVERIES = 16
"""At the end, for warehouse 1."""
STARTED_US = 1_760_000_000_000_000

BY_NAME = {**tables.warehouse.tables, **tables.district.tables}
"""The tables whose rows are of entities."""

Change = Callable[["Run"], None]


class SerialClient(Client):
    """Every request is run when it is sent. Each is a millisecond, and ten are an epoch.

    `known` are the replies to an audit's reads where nothing has changed since; `changed` says where it has.
    `answering` changes the results of a function for a key.
    """

    def __init__(self, deployed: App = app, known: dict[Any, Reply] | None = None) -> None:
        self.reference = SerialReference(deployed)
        self.changed: set[Any] = set()
        self.answering: dict[tuple[str, Any], Callable[[Any], None]] = {}
        self._known = known
        self._sent = 0

    def submit(
        self, operator: OperatorLike, key: KeyLike, function: FunctionLike, *args: Any, **_options: Any
    ) -> Awaitable[Reply]:
        """As `Client.submit`."""
        future: asyncio.Future[Reply] = asyncio.get_running_loop().create_future()
        future.set_result(self.run(operator, key, function, *args))
        return future

    def run(self, operator: OperatorLike, key: KeyLike, function: FunctionLike, *args: Any) -> Reply:
        """One transaction."""
        table = operator if isinstance(operator, str) else operator.name
        name = function if isinstance(function, str) else function.__name__
        if self._known is None or not name.startswith("audit_"):
            reply = self._execute(table, key, name, args)
            self.changed.update(part_of(*entity) for entity in self.reference.entities)
            return reply
        if (name, key) in self.answering:
            reply = self._execute(table, key, name, args)
            self.answering[name, key](reply.result)
            return reply
        if part_of(table, key) in self.changed:
            return self._execute(table, key, name, args)
        if (read := (table, key, name, args)) not in self._known:
            self._known[read] = self._execute(table, key, name, args)
        return self._known[read]

    def _execute(self, table: str, key: KeyLike, function: str, args: tuple[Any, ...]) -> Reply:
        self._sent = tid = self._sent + 1
        plain_key = [*key] if isinstance(key, tuple) else key
        request = Request("r", table, plain_key, function, msgspec.msgpack.encode(args))
        outcome = self.reference.run(tid, STARTED_US + 1000 * tid, request)
        if outcome.error is not None:
            code, kind, message = outcome.error
            return Reply(None, ReplyError(kind, message, code), tid, tid // 10, 1, "r")
        assert outcome.result is not None
        return Reply(decode_plain(outcome.result), None, tid, tid // 10, 1, "r")

    def load_target(self, operator: OperatorLike, replace: bool, timeout: float) -> LoadTarget:
        """Never used: rows are put into the dictionary."""
        raise NotImplementedError

    async def close(self) -> None:
        """As `Client.close`."""


def part_of(table: str, key: Any) -> Any:
    """The part of the data that one of an audit's reads stays in: an entity with its rows."""
    if isinstance(key, int):
        return key
    return key[0] if table in ("item", "stock") else key[:2]


def keyed(loading: Loading) -> Iterator[tuple[Any, Any]]:
    """What is loaded under its whole key: a row's are its entity's key and its own."""
    for key, row in loading.pairs:
        if loading.table is None:
            yield key, row
        else:
            yield (*(key if isinstance(key, tuple) else (key,)), *loading.table.parts_of(row)), row


def stored_in(table: str) -> str:
    """Where the rows of a table of TPC-C, or the entities of an operator, are in the state."""
    return BY_NAME[table].full_name if table in BY_NAME else table


def under_key(table: str, key: Any, row: Any) -> Any:
    """The row as it stands under this key of a table: it has the key's columns too."""
    declared = BY_NAME.get(table)
    if declared is None:
        return row
    kind, n_columns = declared.row_type.declared, len(declared.columns) - len(declared.key)
    return kind(*msgspec.structs.astuple(row)[:n_columns], *key[-len(declared.key) :])


class Outcome(NamedTuple):
    """A request, and its reply; None if there was none."""

    planned: Planned
    reply: Reply | None


class Run:
    """A deployment after a run, and the outcomes that clients have seen."""

    def __init__(self, client: SerialClient, outcomes: list[Outcome]) -> None:
        self.client = client
        self.outcomes = outcomes

    def send(self, planned: Planned) -> Reply:
        """A client sends that and gets the reply."""
        reply = self.client.run(planned.operator, planned.key, planned.function, *planned.arguments)
        self.outcomes.append(Outcome(planned, reply))
        return reply

    def send_all(self) -> None:
        """The whole run."""
        generator = TerminalGenerator(SETTINGS, stream(1, "client"))
        for _ in range(REQUESTS):
            self.send(generator.next())
        for _ in range(DELIVERIES):
            self.send(Planned("delivery", tables.warehouse, 1, "delivery", (3,)))
        for planned, _ in [*self.outcomes]:
            if planned.kind == "new-order":
                self.send(Planned("order-status", tables.district, planned.key, "order_status", planned.arguments[:1]))

    def row(self, table: str, key: Any) -> Any:
        """The row as it stands, None if there is none."""
        declared = BY_NAME.get(table)
        if declared is None:
            return self.client.reference.value(table, key)
        data = self.client.reference.state.get((declared.full_name, key))
        return None if data is None else declared.row_type.decode(data)

    def put(self, table: str, key: Any, row: Any) -> None:
        """Puts a row there; None for no row."""
        state = self.client.reference.state
        self.client.changed.add(part_of(table, key))
        if row is None:
            state.pop((stored_in(table), key), None)
        else:
            state[stored_in(table), key] = msgspec.msgpack.encode(under_key(table, key, row))

    def change(self, table: str, key: Any, **columns: Any) -> None:
        """Changes columns of a row."""
        self.put(table, key, msgspec.structs.replace(self.row(table, key), **columns))

    def first(self, kind: str, where: Callable[[Planned, Any], bool] = lambda _planned, _result: True) -> int:
        """Which outcome is the first of that kind that committed, and of which `where` holds."""
        for at, (planned, reply) in enumerate(self.outcomes):
            if planned.kind == kind and reply is not None and reply.error is None and where(planned, reply.result):
                return at
        raise LookupError(kind)

    def tell(self, at: int, result: Any) -> None:
        """Clients were told that instead."""
        planned, reply = self.outcomes[at]
        assert reply is not None
        self.outcomes[at] = Outcome(planned, reply._replace(result=result))

    def forget(self, at: int) -> None:
        """There was no answer."""
        self.outcomes[at] = Outcome(self.outcomes[at].planned, None)


@cache
def _finished() -> tuple[dict[Any, bytes], list[Outcome], dict[Any, Reply]]:
    run = started()
    run.send_all()
    return run.client.reference.state, run.outcomes, {}


def started(deployed: App = app) -> Run:
    """Before the first request."""
    run = Run(SerialClient(deployed), [])
    run.client.reference.state = dict(_loaded())
    return run


@cache
def _loaded() -> dict[Any, bytes]:
    encode = msgspec.msgpack.Encoder().encode
    return {(stored_in(each.name), key): encode(row) for each in initial(SETTINGS) for key, row in keyed(each)}


def finished() -> Run:
    """After the last request."""
    state, outcomes, known = _finished()
    run = Run(SerialClient(known=known), [*outcomes])
    run.client.reference.state = dict(state)
    return run


def audited(run: Run, witnessed: bool = True) -> Audit:
    """What the audit finds. Two clients took turns."""
    witnesses = [Witness(SETTINGS), Witness(SETTINGS)] if witnessed else []
    for number, (planned, reply) in enumerate(run.outcomes if witnessed else []):
        if reply is None:
            witnesses[number % 2].unknown(planned)
        else:
            witnesses[number % 2].answered(planned, reply)
    # As it is between two processes.
    reports = [msgspec.msgpack.decode(msgspec.msgpack.encode(witness.report())) for witness in witnesses]
    return asyncio.run(audit(run.client, SETTINGS, reports))


def violations_after(change: Change) -> list[str]:
    """What the audit finds wrong if that is changed after a sound run."""
    run = finished()
    change(run)
    return audited(run).violations
