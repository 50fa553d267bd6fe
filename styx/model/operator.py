"""The programming model's unit: an operator, a partitioned set of entities and the functions that run on them.

An operator holds declarations only (names, types, functions), never state.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Sequence
from datetime import timedelta
from types import GenericAlias
from typing import Any, Final, TypeVar, overload

from styx.errors import ConfigurationError, UnknownFunction
from styx.model.agenda import Retry
from styx.model.app_index import AppIndex
from styx.model.app_view import AppView
from styx.model.cron import Cron, declared_cron, needed_parameters
from styx.model.entity_handle import EntityReference
from styx.model.event import Event
from styx.model.function_reference import FunctionReference
from styx.model.function_spec import BUILT_IN, NO_HINTS, FunctionSpec, Hints, UserFunction
from styx.model.internal_operator import InternalOperator
from styx.model.limits import NAME_CHARS_MAX
from styx.model.migration import POSITIONAL, Migration
from styx.model.partition_function import Partitions
from styx.model.partitioning import Key, KeySpace, KeyType
from styx.model.placement import check_partition_key
from styx.model.reference_entries import ReferenceEntries, connect, in_order
from styx.model.subscription import Subscription, check_subscriber
from styx.relational.table import Table
from styx.relational.time_to_live import declared_us
from styx.relational.view import View
from styx.values.codec import TypedState, decode_plain, encode_strict, pack_strict, shown
from styx.values.declared_types import check_declared

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]*+")
PARTITIONS_MAX = 65_536

_ABSENT: Final = object()

F = TypeVar("F", bound=UserFunction)


class Operator:
    """A partitioned set of entities, each with its own state and the same functions.

    Parameters
    ----------
    name: unique in its app; letters, digits, `_`, `.` and `-`.
    n_partitions: number of partitions its keys are spread over; None: one for each slot of the deployment.
    key_type: `str`, `int`, or a tuple of them such as `(int, int)` for composite keys.
    state_type: a type msgspec can convert; `get` returns it and `put` checks it. None: plain msgpack values.
    partition_key: a function of the key; keys for which it returns the same value share a partition.
    migrate: a plain, deterministic function that makes a state of `state_type` of one that an earlier version stored,
    and that `state_type` does not read whole. It gets plain data, or what its parameter is annotated with, and is
    called when a version is deployed: once for each such entity.
    ttl: an entity whose state was not written for so long is deleted; 1 second to 36,500 days.

    `taken_by` is the app that has it, "" before there is one; then it gets no more tables
    or functions.

    Raises `ConfigurationError` at once for anything that could only fail later.
    """

    served = True
    """Whether gateways take calls of its functions, and loads."""
    calls: Sequence[Operator] = ()
    """Those that it calls by its declaration."""
    emits: Sequence[Event[Any]] = ()
    """The events that it emits by its declaration."""

    def __init__(
        self,
        name: str,
        n_partitions: int | None = None,
        *,
        key_type: Any = str,
        state_type: Any = None,
        partition_key: Callable[[Any], Any] | None = None,
        migrate: Callable[[Any], Any] | None = None,
        ttl: timedelta | None = None,
    ) -> None:
        if not isinstance(name, str) or not _NAME.fullmatch(name) or len(name) > NAME_CHARS_MAX:
            raise ConfigurationError(
                f"an operator's name is letters, digits, '_', '.' and '-', at most {NAME_CHARS_MAX} characters, "
                f"and starts with a letter or '_': got {shown(name)}"
            )
        if n_partitions is not None and (type(n_partitions) is not int or not 0 < n_partitions <= PARTITIONS_MAX):
            raise ConfigurationError(
                f"operator {name!r}: n_partitions must be a number from 1 to {PARTITIONS_MAX}, "
                f"got {shown(n_partitions)}"
            )
        if partition_key is not None and not callable(partition_key):
            raise ConfigurationError(f"operator {name!r}: partition_key must be a function of the key")
        self.name = name
        self.ttl_us = declared_us(f"operator {name!r}", ttl)
        self.n_partitions = n_partitions
        self.key_type = KeyType(key_type)
        if partition_key is not None:
            check_partition_key(name, self.key_type, partition_key)
        self.state_type = state_type
        self.functions: dict[str, FunctionSpec] = {}
        self.crons: dict[tuple[Any, str], Cron] = {}
        self.tables: dict[str, Table] = {}
        self.taken_by = ""
        self.internal: list[InternalOperator] = []
        self.referrers: list[ReferenceEntries] = []
        self.subscriptions: list[Subscription] = []
        self._by_callable: dict[Any, FunctionSpec] = {}
        self.key_space = KeySpace(name, self.key_type, n_partitions, partition_key)
        self.partitions = Partitions(name, n_partitions)
        self.encode_state: Callable[[Any], bytes] = encode_strict
        self.pack_state: Callable[[Any], bytes] = pack_strict
        self.decode_state: Callable[[bytes], Any] = decode_plain
        self.unpack_state: Callable[[bytes], Any] = decode_plain
        self.typed_state: TypedState | None = None
        self.migration: Migration | None = None
        if migrate is not None and state_type is None:
            raise ConfigurationError(
                f"operator {name!r}: migrate= needs a state_type=, which says what state has to be converted"
            )
        if state_type is not None:
            try:
                check_declared(state_type)
                typed = TypedState(state_type)
            except Exception as error:  # noqa: BLE001 - whatever msgspec says is the declaration's fault
                raise ConfigurationError(f"operator {name!r}: state_type {shown(state_type)}: {error}") from None
            self.encode_state = self.pack_state = typed.encode
            self.decode_state, self.unpack_state = typed.decode, typed.unpack
            self.typed_state = typed
            self.migration = None if migrate is None else Migration(f"operator {name!r}", migrate)

    def __class_getitem__(cls, types: Any) -> Any:
        """`Operator[str, Account]`: the type of its keys and of its states, for type checkers (`styx/typed.pyi`)."""
        return GenericAlias(cls, types)

    def __getattr__(self, name: str) -> FunctionReference:
        """`cart.checkout`: a registered function with its operator, wherever a function is taken. What the operator
        itself has under the name comes first: such a function is named by a text, "cart.register".
        """
        declared: dict[str, Any] = self.__dict__.get("functions", {})
        partitions = self.__dict__.get("partitions")
        if name in declared or (partitions is not None and name in partitions.functions):
            return FunctionReference(self.name, name)
        known = ", ".join(sorted({*declared, *(partitions.functions if partitions is not None else ())})) or "none"
        raise AttributeError(
            f"operator {self.__dict__.get('name')!r} has no function {name!r}; it has: {known}", name=name, obj=self
        )

    def __getitem__(self, key: Any) -> EntityReference[Any, Any]:
        """An entity, to be given to `ctx.at` or `client.at`."""
        return EntityReference(self, key)

    @overload
    def register(self, func: F) -> F: ...

    @overload
    def register(
        self, *, read_only: bool = False, local: bool = False, contended: bool = False
    ) -> Callable[[F], F]: ...

    def register(
        self, func: Any = _ABSENT, *, read_only: bool = False, local: bool = False, contended: bool = False
    ) -> Any:
        """Registers `func` under its own name and returns it unchanged: `@account.register`, or with what the engine
        may rely on, `@account.register(read_only=True)`.

        `read_only`: the function changes nothing, and calls only functions of which the same is declared; whatever else
        it tries ends its transaction (`ReadOnlyViolation`). A request for it sees the state at its epoch's beginning,
        and is never in conflict with others.

        `local`: the function and all that it calls stay on the slot of its own entity (`partition_key`), and make no
        external call. A request for it runs once, behind its epoch's other transactions. If it leaves the slot, it
        costs one more epoch, in which it runs like any other; `styx status` names such functions.

        `contended`: requests for the function are usually in each other's way. They are not tried beside the others of
        their epoch, but run one after the other, behind those that are in nobody's way.

        Raises `ConfigurationError` for a plain `def`, a missing context parameter, a name registered before, a hint
        that is not True or False, or two hints at once.
        """
        hints = self._hints(read_only=read_only, local=local, contended=contended)
        if func is _ABSENT:
            return lambda function: self._register(function, hints)
        return self._register(func, hints)

    def cron(self, expression: str, *, key: Any, retry: Retry | None = None) -> Callable[[F], F]:
        """Has a function called on the entity `key` whenever `expression` says so, in UTC: `@report.cron("0 3 * * *",
        key="all")`. The function takes the context alone, and is registered if it is not.

        Each tick is a transaction of its own, exactly once. `ctx.now()` is the tick's time. Ticks that passed while
        nothing could run, or while an earlier one was tried again, are one: the last of them. An aborted one is tried
        again as `retry` says, and is then a dead call; the next tick comes nevertheless.

        Raises `ConfigurationError`, also once an `App` has the operator.
        """
        return lambda func: self._add_cron(func, expression, key, retry)

    def _add_cron(self, func: F, expression: str, key: Any, retry: Retry | None) -> F:
        if self.taken_by:
            raise ConfigurationError(
                f"operator {self.name!r} is in the app {self.taken_by!r} already: declare its crons before App(…) "
                "takes the operator"
            )
        if not self.has(func):
            self._register(func, NO_HINTS)
        spec = self.function(func)
        if spec.read_only:
            raise ConfigurationError(f"{self.name}.{spec.name}: a cron of a read-only function would have no effect")
        needed = needed_parameters(func)
        if needed:
            raise ConfigurationError(
                f"{self.name}.{spec.name}: a cron calls it with the context alone, and it also needs "
                f"{', '.join(needed)}"
            )
        declared = declared_cron(self.key_space, spec.name, expression, key, retry)
        other = self.crons.setdefault((declared.key, spec.name), declared)
        if other is not declared:
            raise ConfigurationError(
                f"{self.name}.{spec.name} has a cron for the key {shown(key)} already, {other.expression!r}: one "
                'expression can name several times, such as "0 3,15 * * *"'
            )
        return func

    @overload
    def register_partition(self, func: F) -> F: ...

    @overload
    def register_partition(self, *, read_only: bool = False) -> Callable[[F], F]: ...

    def register_partition(self, func: Any = _ABSENT, *, read_only: bool = False) -> Any:
        """Registers a partition function under its own name and returns it unchanged: `@cart.register_partition`.

        It gets a `PartitionContext`, and runs once on each partition of the operator when another function calls it
        with `ctx.call_all` or `ctx.call_all_async`. No client can call it. `read_only` is as for `register`.

        Raises `ConfigurationError` as `register`.
        """
        hints = self._hints(read_only=read_only)
        if func is _ABSENT:
            return lambda function: self._register_partition(function, hints)
        return self._register_partition(func, hints)

    def on(
        self,
        event: Event[Any],
        *,
        key: Callable[[Any], Any] | None = None,
        after_commit: bool = False,
        retry: Retry | None = None,
        ordered_by: Callable[[Any], Any] | None = None,
    ) -> Callable[[F], F]:
        """Calls the function for each `event` that any function of the app emits: `@stock.on(price_changed, key=lambda
        e: e.product)` above `async def reprice(ctx, event: PriceChanged)`. Registers it if it is not yet.

        `key`: makes the entity's key of the event; None: it is that of the emitting entity. The call is part of the
        emitting transaction. `after_commit`: it is a transaction of its own, tried as `retry` says; the calls for the
        events of one emitting entity are made one after the other, in the serial order. `ordered_by`: those of all
        events for which this function of the event gives the same are, whoever emitted them.

        Raises `ConfigurationError` as `register`, and for what no event can be handled with.
        """

        def subscribe(func: F) -> F:
            if self.taken_by:
                raise ConfigurationError(
                    f"operator {self.name!r} is in the app {self.taken_by!r} already: subscribe before App(…) takes it"
                )
            known = self.has(func)
            name = self.function(func).name if known else self._checked_name(func)
            check_subscriber(self.name, self.functions[name].func if known else func)
            made = Subscription(event, self, name, key, after_commit, retry, ordered_by)
            if any(each.name == made.name for each in self.subscriptions):
                raise ConfigurationError(f"{made.reference} is called for event {event.name!r} already")
            if not known:
                self._register(func, NO_HINTS)
            self.subscriptions.append(made)
            return func

        return subscribe

    def _register_partition(self, func: F, hints: Hints) -> F:
        self.partitions.add(self._checked_name(func), func, hints)
        return func

    def _hints(self, **given: Any) -> Hints:
        """The hints that `register` was given, checked."""
        for name, value in given.items():
            if type(value) is not bool:
                raise ConfigurationError(
                    f"operator {self.name!r}: {name}= of register is True or False, got {shown(value)}"
                )
        hints = Hints(**given)
        if hints.contended and (hints.read_only or hints.local):
            raise ConfigurationError(
                f"operator {self.name!r}: a function is registered with contended= or with read_only= or local=, not "
                "with both: what is read-only or local runs once anyway, and conflicts cost it nothing"
            )
        if hints.read_only and hints.local:
            raise ConfigurationError(
                f"operator {self.name!r}: a function is registered with read_only= or with local=, not with both: what "
                "is read-only is in no conflict anyway, wherever it reads"
            )
        return hints

    def table(
        self,
        name: str,
        row_type: Any,
        *,
        key: Any,
        indexes: Any = (),
        checks: Any = (),
        references: Any = (),
        auto: str | None = None,
        was: str = "",
        migrate: Callable[[Any], Any] | None = None,
        ttl: Any = None,
    ) -> Table:
        """Declares a table: each entity of the operator has rows of `row_type` in it, which `ctx.rows(table)` reaches.

        `row_type`: a `msgspec.Struct` or a dataclass, whose fields are the columns. `key`: the column, or columns, of
        the primary key, by which an entity has one row at most. `indexes`, `checks` and `references`: `Index`, `Check`
        and `Ref` objects. `auto`: the engine makes the key of a row that has its column's default: "unique", a text
        that is given once in the deployment, or "serial", the entity's next number, behind those of all rows that it
        has had. `was`: the name that the table had before. `migrate`: a plain, deterministic function that makes a row
        of one that an earlier version stored and that `row_type` does not read whole; it works as the operator's own
        one, and leaves the primary key as it is. `ttl`: a row that was not written for so long is deleted; "given":
        only rows that `insert` or `put` give a time.

        Raises `ConfigurationError` that says all that is wrong.
        """
        given = {"key": key, "indexes": indexes, "checks": checks, "references": references, "auto": auto, "was": was}
        given["ttl"] = ttl
        return self.declare_table(Table(), name, row_type, migrate, **given)

    def declare_table(
        self, table: Table, name: str, row_type: Any, migrate: Callable[[Any], Any] | None, **given: Any
    ) -> Table:
        """Makes the table of an empty one, to which others may refer already; as `table`."""
        if self.taken_by:
            raise ConfigurationError(
                f"operator {self.name!r} is in the app {self.taken_by!r} already, which has no table "
                f"{shown(name)}: declare all tables before App(…) takes the operator"
            )
        if isinstance(name, str) and name in self.tables:
            raise ConfigurationError(f"operator {self.name!r} has a table {name!r} already; rename one of them")
        migration = None if migrate is None else Migration(f"table '{self.name}/{name}'", migrate)
        given |= {"migration": migration, "partition_of": self.key_space.partition_of_flat}
        table.owner = self
        table.declare(self.name, len(self.key_type.parts) or 1, name, row_type, **given)
        self.tables[name] = table
        for declared in table.app_wide:
            index = AppIndex(table, declared, self.key_type)
            table.consequences.append(index)
            self.internal.append(index.operator)
        connect(table)
        return table

    def keep_view(self, view: View) -> None:
        """Declares the tables of a view of one of the operator's tables. Groups over all entities are entities of an
        internal operator.
        """
        if view.scope == "app":
            keeper = AppView(view)
            if any(each.name == keeper.operator.name for each in self.internal):
                raise ConfigurationError(
                    f"view {view.name!r} of table {view.source.full_name}: an app-wide index of the table has the same "
                    "name and columns, and both keep entries under it; rename one of them"
                )
            view.source.consequences += keeper.consequences
            self.internal.append(keeper.operator)
        elif view.scope == "partition":
            view.source.declare_kept(view, self.partitions.name, 1, True)
        else:
            view.source.declare_kept(view, self.name, view.source.entity_parts, True)

    def add_referrer(self, entries: ReferenceEntries) -> None:
        """Rows of entities refer to this operator's: from now on, a function that deletes a value has more to do."""
        self.referrers = in_order(self.referrers, entries)
        for function in self.functions.values():
            function.deletes_alone = False

    def _register(self, func: F, hints: Hints) -> F:
        name = self._checked_name(func)
        spec = self.spec(name, func, hints)
        self.functions[name] = self._by_callable[func] = self._by_callable[FunctionReference(self.name, name)] = spec
        return func

    def _checked_name(self, func: Any) -> str:
        """The name to register `func` under; raises `ConfigurationError` for what cannot be registered."""
        name = getattr(func, "__name__", None)
        if inspect.isasyncgenfunction(func):
            raise ConfigurationError(
                f"{self.name}.{name} has a `yield`: a function returns one result; return a list of what it yields"
            )
        if not inspect.iscoroutinefunction(func) or name is None:
            raise ConfigurationError(
                f"operator {self.name!r}: {shown(func)} is not an `async def` function; "
                f"write `async def {name or 'f'}(ctx, …)`"
            )
        parameters = list(inspect.signature(func).parameters.values())
        if not parameters or parameters[0].kind not in POSITIONAL:
            raise ConfigurationError(
                f"{self.name}.{name} lacks the context: its first parameter must take it, as in `async def {name}(ctx)`"
            )
        if name in BUILT_IN:
            raise ConfigurationError(
                f"operator {self.name!r}: the name {name!r} is the engine's own; rename the function"
            )
        if name in self.functions or name in self.partitions.functions:
            raise ConfigurationError(f"operator {self.name!r} has a function {name!r} already; rename one of them")
        if self.taken_by:
            raise ConfigurationError(
                f"operator {self.name!r} is in the app {self.taken_by!r} already, which has no function "
                f"{name!r}: register all functions before App(…) takes the operator"
            )
        return str(name)

    def spec(self, name: str, func: UserFunction, hints: Hints = NO_HINTS) -> FunctionSpec:
        """The specification of a function on this operator, registered or built in."""
        spec = FunctionSpec(
            self.key_space, name, func, self.encode_state, self.decode_state, self.pack_state, self.unpack_state, hints
        )
        spec.ttl_us = self.ttl_us
        if self.referrers or self.ttl_us:
            spec.deletes_alone = False
        return spec

    def function(self, wanted: Any) -> FunctionSpec:
        """The registered function by name or by itself; raises `UnknownFunction` that lists what there is."""
        try:
            spec = self.functions.get(wanted) or self._by_callable.get(wanted)
        except TypeError:  # not hashable
            spec = None
        if spec is None:
            known = ", ".join(sorted(self.functions)) or "none"
            hint = (
                " It is a partition function, which runs on all partitions: a function calls it with ctx.call_all"
                if self.partitions.has(wanted)
                else ""
            )
            raise UnknownFunction(
                f"operator {self.name!r} has no function {_name_of(wanted)}; it has: {known}{hint and '.'}{hint}"
            )
        return spec

    def has(self, wanted: Any) -> bool:
        """Whether the operator has the function, given by name or by itself."""
        try:
            return wanted in self.functions or wanted in self._by_callable
        except TypeError:  # not hashable
            return False

    def check_key(self, key: Any) -> Key:
        """`key` if it is of the key type, else `BadKey`."""
        checked: Key = self.key_space.check(key)
        return checked

    def partition_of(self, key: Key, n_slots: int) -> int:
        """Partition index of a checked key: `hash(partition_key(key)) % n_partitions`, None meaning `n_slots`."""
        return self.key_space.partition_of(key, n_slots)

    def slot_of(self, key: Key, n_slots: int) -> int:
        """The slot of a checked key: that of its partition, `partition_of(key) % n_slots`. Raises as `partition_of`."""
        return self.key_space.slot_of(key, n_slots)

    def slots_of(self, keys: Sequence[Key], n_slots: int) -> list[int]:
        """The slot of each checked key, at a smaller cost than key by key; raises as `partition_of`."""
        return self.key_space.slots_of(keys, n_slots)

    def again(self, function: str, params: bytes) -> bytes:
        """The arguments with which a dead call of a function is tried again."""
        return params

    def __repr__(self) -> str:
        return f"Operator({self.name!r})"


def _name_of(wanted: Any) -> str:
    return shown(wanted) if isinstance(wanted, str) else shown(getattr(wanted, "__name__", wanted))
