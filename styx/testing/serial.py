"""The serial reference: the slow, obvious executor that gives the right outcome of every transaction.

One dictionary, one transaction at a time, one function at a time, in the public order inside a transaction. It shares
with the engine the programming model and the texts of `styx.model.execution`, but no code that runs transactions: it
has no epochs, no conflicts and no messages. Paper section 3.
"""

from __future__ import annotations

from collections.abc import Coroutine, Mapping
from contextvars import Context as Variables
from operator import itemgetter
from typing import Any, Final, NamedTuple

from styx.errors import InTransactionError
from styx.messages import EventRecord, Request
from styx.model.access import Access
from styx.model.agenda import due_of, giver_of
from styx.model.app import App
from styx.model.call_limit import call_limit_error
from styx.model.cell import Cell, Environment
from styx.model.context import PATH_STEP_BYTES, Context
from styx.model.delivery import delivery_function
from styx.model.event_record import event_record
from styx.model.execution import (
    ErrorTriple,
    Outcome,
    Target,
    aborted,
    close_quietly,
    encode_result,
    failure_of,
    foreign_await_error,
    rejection,
    resolve_request,
    start,
    unfinished,
    with_own_generators,
)
from styx.model.function_spec import FunctionSpec, MadeCall
from styx.model.internal_operator import is_internal
from styx.model.key_range import KeyRange
from styx.model.limits import Limits
from styx.model.partitioning import Key
from styx.model.table_names import (
    entities_of,
    entry_name,
    holds_agenda,
    holds_events,
    holds_rows,
    holds_values,
    holds_view,
    owner_of,
)
from styx.model.waiting import ExternalCall, SyncCall
from styx.native.compiled import calls_more, transaction_limits
from styx.protocol.frames import decode_outcome
from styx.protocol.reads import READ_PHASE
from styx.relational.index_range import IndexRange, Position, RowKey
from styx.schema.conversion import conversion
from styx.schema.cron_entries import cron_entries
from styx.schema.row_rules import RowRules
from styx.schema.state_reading import Misfit, StateReader
from styx.state.table import without_deleted
from styx.testing.lanes import Lanes

Entity = tuple[str, Key]
"""(operator name, key)."""
State = dict[Entity, bytes]
"""Every entity that exists, with its encoded state."""
ExternalResult = bytes | tuple[str, str]
"""The outcome of an external function: its encoded result, or the (type, message) of its exception."""


class Place(NamedTuple):
    """Where a transaction was serialized, and whether it was a delivery rather than a client's request."""

    epoch: int
    phase: int
    delivers: bool = False


NO_PLACE: Final = Place(0, 0)
_UNWRITTEN: Final = object()
_NO_EXTERNALS: Mapping[bytes, ExternalResult] = {}


def external_result(outcome: bytes) -> ExternalResult:
    """From the outcome of an external call, as the log has it."""
    decoded = decode_outcome(outcome)
    return decoded.error if decoded.error is not None else decoded.value or b""


class MissingExternal(LookupError):
    """The reference needs an external function's result that `externals` does not hold; `key` is its log
    key.
    """

    def __init__(self, key: bytes, function: str) -> None:
        super().__init__(f"externals holds no result for {function}, logged under key {key.hex()}")
        self.key = key


class SerialReference:
    """Runs requests one after the other against a dictionary.

    `state` maps (operator name, key) to the encoded state and may be read, filled or replaced between runs.
    `given` has where each call that was given for later was put, by its id, and `lanes` the order of those in lanes.
    `emitted` are the events of all committed transactions, in the order in which these have run. `entities` lists
    which entities the last transaction was on, in order. `read_only` says whether its root is a read-only function,
    None if the request was refused. `limits` and `n_slots` must be the deployment's, because they decide outcomes and
    what `ctx.partition` says.
    """

    def __init__(
        self,
        app: App,
        limits: Limits | None = None,
        n_slots: int = 4,
        externals: Mapping[bytes, ExternalResult] | None = None,
    ) -> None:
        self.app = app
        self.limits = Limits() if limits is None else limits
        self.n_slots = n_slots
        self.externals = _NO_EXTERNALS if externals is None else externals
        self.state: State = {}
        self.entities: list[Entity] = []
        self.read_only: bool | None = None
        self.given: dict[str, Entity] = {}
        self.lanes = Lanes()
        self.emitted: list[EventRecord] = []
        self._place = NO_PLACE
        self._begin_crons()

    def run(self, tid: int, timestamp_us: int, request: Request, place: Place = NO_PLACE) -> Outcome:
        """One transaction from start to end; only a committed one changes `state`. `place` is where it was serialized,
        and whether it is a delivery, which no client can ask for.

        `timestamp_us`: microseconds since 1970, what `ctx.now()` gives. Raises `MissingExternal`; nothing that the
        request or the app does wrong raises, it is in the outcome.
        """
        self.entities, self.read_only = [], None
        try:
            target = self._delivery(request) if place.delivers else self._target(request)
        except InTransactionError as error:
            return Outcome(None, rejection(error))
        self.read_only = target.function.read_only
        transaction = _Transaction(self, tid, timestamp_us, place)
        root = _Call(b"", target.function, target.key, request.params)
        try:
            result = with_own_generators(transaction.execute, root)
        except _Ended as end:
            return Outcome(None, end.error)
        self._place = place
        self._note_lanes(transaction.writes)
        self._commit(transaction.writes)
        return Outcome(result, None)

    def _target(self, request: Request) -> Target:
        return resolve_request(self.app, request, self.limits, self.n_slots)

    def _delivery(self, request: Request) -> Target:
        operator = self.app.operator(request.operator)
        key = operator.check_key(request.key)
        return Target(delivery_function(operator, request.function), key, operator.slot_of(key, self.n_slots))

    def begin_with(self, state: Mapping[Entity, bytes]) -> None:
        """This is there, beside what is there already: also calls for later, which are delivered from here on."""
        self.state.update(state)
        self.given.update({due_of(data)[1]: each for each, data in state.items() if holds_agenda(each[0])})

    def begin_version(self, app: App) -> None:
        """Another version of the app runs from here on, and converts what its `migrate=` is for.

        Raises `ValueError` for an entity that it cannot use: it should have been refused.
        """
        self.app = app
        self._begin_crons()
        tables: dict[str, dict[Any, bytes]] = {}
        for (name, key), data in self.state.items():
            if is_internal(owner_of(name)):
                continue
            if owner_of(name) not in app.operators and name not in app.drops:
                raise ValueError(f"{entry_name(name, key)}: the version has no operator {owner_of(name)!r}")
            tables.setdefault(name, {})[key] = data
        changed = conversion(app, tables, self.limits, self.n_slots)
        for name in changed.dropped:
            del tables[name]
        for old, new in changed.renamed.items():
            tables[new] = tables.pop(old)
        for name, values in changed.writes.items():
            tables[name] = without_deleted({**tables.get(name, {}), **values})
        for name, table in tables.items():
            if holds_values(name) or (holds_rows(name) and not holds_view(name)):
                self._read_all(name, table, tables)
        for declared, consequence in app.entries():
            assert consequence.entries is not None
            rows = tables.get(declared.full_name, {}).items()
            tables[consequence.entries.full_name] = consequence.derived(rows)
        self.state = {}
        self.begin_with({(name, key): data for name, table in tables.items() for key, data in table.items()})

    def _begin_crons(self) -> None:
        tables: dict[str, dict[Any, bytes]] = {}
        for (name, key), data in self.state.items():
            if holds_agenda(name):
                tables.setdefault(name, {})[key] = data
        for name, changes in cron_entries(self.app, tables, lambda operator, key: True).items():
            self._commit({(name, key): data for key, data in changes.items()})

    def _read_all(self, name: str, table: dict[Any, bytes], tables: dict[str, dict[Any, bytes]]) -> None:
        """Reads all values or rows of a table; raises `ValueError` for one that the version cannot use."""
        operator, bytes_max = self.app.operators[owner_of(name)], self.limits.value_bytes_max
        table_of_app = self.app.table(name)
        if holds_rows(name) and table_of_app is None:
            raise ValueError(f"table {name!r}: the version does not have it")
        rules = None if table_of_app is None else RowRules(table_of_app, bytes_max)
        reader = StateReader(operator, bytes_max)
        for key, data in table.items():
            try:
                if rules is None:
                    reader.read(data)
                else:
                    rules.read(lambda other: tables.get(other, {}), key, data)
            except Misfit as error:
                raise ValueError(f"{entry_name(name, key)}{error}") from None

    def value(self, operator: str, key: Any) -> Any:
        """The decoded state of one entity, None if it has none."""
        declared = self.app.operator(operator)
        data = self.state.get((operator, declared.check_key(key)))
        return None if data is None else declared.decode_state(data)

    def _emit(self, entity: Entity, data: bytes) -> None:
        table, key = entity
        giver, _ = giver_of(key)  # type: ignore[arg-type]  # an emission's key
        owner = self.app.owner(owner_of(table))
        assert owner is not None, "an event of an operator that the app does not have"
        slot = owner.slot_of(giver, self.n_slots)
        self.emitted.append(event_record(owner.name, key, data, slot, self._place.epoch, self._place.phase))

    def _commit(self, writes: dict[Entity, bytes | None]) -> None:
        state = self.state
        for entity, data in writes.items():
            if data is None:
                state.pop(entity, None)
            elif holds_events(entity[0]):
                self._emit(entity, data)
            else:
                state[entity] = data
                if holds_agenda(entity[0]):
                    self.given[due_of(data)[1]] = entity

    def _note_lanes(self, writes: dict[Entity, bytes | None]) -> None:
        """What a transaction has given and taken, in the order in which it did."""
        for (table, key), data in writes.items():
            if holds_agenda(table):
                if data is None:
                    self.lanes.gone(str(key[-1]))  # type: ignore[index]  # an entry's key
                else:
                    self.lanes.given(due_of(data)[1])


class _Ended(Exception):
    """The transaction ended in an error."""

    def __init__(self, error: ErrorTriple) -> None:
        super().__init__(error)
        self.error = error


class _Call(NamedTuple):
    path: bytes
    function: FunctionSpec
    key: Key
    params: bytes


class _Running(NamedTuple):
    """A function that has started and not ended, with the context variables it has set."""

    context: Context
    function: FunctionSpec
    coroutine: Coroutine[Any, Any, Any]
    variables: Variables


class _Overlay(Cell):
    """One entity as its transaction sees it: its own last write, else the committed state."""

    __slots__ = ("_entities", "_entity", "_state", "_transaction", "_writes")

    def __init__(
        self,
        transaction: _Transaction,
        state: State,
        writes: dict[Entity, bytes | None],
        entity: Entity,
        entities: list[Entity],
    ) -> None:
        entities.append(entity)
        self._transaction = transaction
        self._entities = entities
        self._state = state
        self._writes = writes
        self._entity = entity

    def read(self, chain: bytes) -> bytes | None:
        data: Any = self._writes.get(self._entity, _UNWRITTEN)
        return self._state.get(self._entity) if data is _UNWRITTEN else data

    def write(self, chain: bytes, value: bytes | None) -> None:
        self._writes[self._entity] = value

    def access(self, access: Access) -> Any:
        state, writes, operator = self._state, self._writes, access.operator

        def read(key: Key) -> bytes | None:
            data: Any = writes.get((operator, key), _UNWRITTEN)
            return state.get((operator, key)) if data is _UNWRITTEN else data

        result = access.result(read)
        for key, value in access.writes.items():
            self._entities.append((operator, key))
            writes[operator, key] = value
        return result

    def sibling(self, environment: Environment, table: str, key: Any) -> Cell:
        return _Overlay(self._transaction, self._state, self._writes, (table, key), self._entities)

    def scan(self, environment: Environment, wanted: IndexRange, chain: bytes) -> list[tuple[RowKey, bytes]]:
        index, found = wanted.index, list[tuple[Position, RowKey, bytes]]()
        key: Any
        for (table, key), data in {**self._state, **self._writes}.items():
            if table != index.table or data is None:
                continue
            entry = index.entry(key, data, environment.n_slots)
            if entry is not None and entry[0] == wanted.group and wanted.low <= entry[1] < wanted.high:
                found.append((entry[1], key, data))
        found.sort()
        if wanted.first:
            found = found[: wanted.first]
        elif wanted.last:
            found = found[-wanted.last :]
        return [(key, data) for _, key, data in found]

    def count(self, environment: Environment, wanted: IndexRange, chain: bytes) -> int:
        return len(self.scan(environment, wanted, chain))

    def listed(self, table: str, wanted: KeyRange, first: int) -> tuple[list[tuple[Any, bytes]], bool]:
        transaction, (_, number) = self._transaction, self._entity
        if not transaction.outside:
            return super().listed(table, wanted, first)  # type: ignore[no-any-return]  # it raises
        operator, n_slots = transaction.app.operators[owner_of(table)], transaction.n_slots
        slot = operator.partitions.numbers.slot_of(number, n_slots)
        found: list[tuple[Any, bytes]] = []
        for (name, key), data in self._state.items():
            if name == table and wanted.has(key):
                (entity,) = entities_of(operator, table, [key])
                if operator.slot_of(entity, n_slots) == slot:
                    found.append((key, data))
        found.sort()
        return found[:first], len(found) > first


class _Transaction(Environment):
    """One transaction under way, or read outside the log, which its contexts know."""

    def __init__(self, reference: SerialReference, tid: int, timestamp_us: int, place: Place) -> None:
        self._place = place
        self.outside = place.phase == READ_PHASE
        self.app = reference.app
        self.limits = transaction_limits(reference.limits)
        self.n_slots = reference.n_slots
        self.externals = reference.externals
        self.state = reference.state
        self.entities = reference.entities
        self.tid = tid
        self.timestamp_us = timestamp_us
        self.writes: dict[Entity, bytes | None] = {}
        self.called = 1  # the root
        self.result = b""
        # The chain that runs: the path of its outermost function, and the functions that wait, innermost
        # last.
        self.chain = b""
        self.stack: list[_Running] = []

    def place(self) -> tuple[int, int]:
        return self._place.epoch, max(0, self._place.phase - 1)  # what phases 0 and 1 have run is of the first run

    def execute(self, root: _Call) -> bytes:
        """Runs everything and returns the root's result; raises `_Ended` at the first error."""
        todo = [root]
        try:
            while todo:
                # A chain's asynchronous calls go on top of what earlier chains left: depth first, in path
                # order.
                todo.extend(reversed(self._run_chain(todo.pop())))
        finally:
            for running in self.stack:
                running.context._close()
            for running in reversed(self.stack):
                running.variables.run(close_quietly, running.coroutine)
        return self.result

    def _run_chain(self, outermost: _Call) -> list[_Call]:
        """Runs a function and all it calls synchronously; returns their asynchronous calls in call-path
        order.
        """
        self.chain = outermost.path
        stack, calls = self.stack, list[_Call]()
        self._start(outermost)
        value: bytes | None = None
        while stack:
            running = stack[-1]
            running.context._called = self.called
            try:
                waits_for = running.variables.run(running.coroutine.send, value)
            except StopIteration as returned:
                value = self._returned(running, returned.value, calls)
            except BaseException as error:  # noqa: BLE001 - an abort, whatever it is
                raise _Ended(aborted(failure_of(running.context, error))) from None
            else:
                self.called = running.context._called
                value = self._serve(running, waits_for)
        calls.sort(key=itemgetter(0))
        return calls

    def _start(self, call: _Call) -> None:
        path, function, key, params = call
        overlay = _Overlay(self, self.state, self.writes, (function.operator, key), self.entities)
        context = Context(key, self, function, overlay, path, self.chain, self.limits.operations_max, self.chain)
        try:
            coroutine = start(function, context, params)
        except InTransactionError as error:
            raise _Ended(aborted(error) if path else rejection(error)) from None
        self.stack.append(_Running(context, function, coroutine, Variables()))

    def _returned(self, running: _Running, value: Any, calls: list[_Call]) -> bytes | None:
        """Ends the innermost function; gives what its caller, if it has one, is resumed with."""
        context = running.context
        self.called = context._called
        context._close()
        self.stack.pop()
        doom = unfinished(context)
        if doom is not None:
            raise _Ended(aborted(doom))
        data = None
        if self.stack or not context._path:
            try:
                data = encode_result(running.function, value, self.limits)
                if self.stack:
                    self.called += calls_more(data, self.limits)
                    if self.called > self.limits.invocations_max:
                        raise call_limit_error(self.limits, data)
            except InTransactionError as error:
                raise _Ended(aborted(error)) from None
            if not context._path:
                self.result = data
        for index, call in enumerate(context._made):
            if not call.synchronous:
                calls.append(self._call(context, index, call))
        return data

    def _serve(self, running: _Running, waits_for: Any) -> bytes | None:
        """The value to resume with at once, or None after starting the function that is waited for."""
        context = running.context
        if context._doom is not None:
            raise _Ended(aborted(context._doom))
        if type(waits_for) is SyncCall and waits_for.context is context:
            self._start(self._call(context, waits_for.number, waits_for.call))
            return None
        if type(waits_for) is ExternalCall and waits_for.context is context:
            return self._external(waits_for)
        raise _Ended(aborted(foreign_await_error(running.coroutine, waits_for)))

    def _external(self, call: ExternalCall) -> bytes:
        found = self.externals.get(call.key)
        if found is None:
            raise MissingExternal(call.key, getattr(call.function, "__qualname__", repr(call.function)))
        if isinstance(found, tuple):
            raise _Ended(("aborted", *found))
        return found

    def _call(self, context: Context, index: int, call: MadeCall) -> _Call:
        path = context._path + index.to_bytes(PATH_STEP_BYTES, "big")
        return _Call(path, call.function, call.key, call.params)
