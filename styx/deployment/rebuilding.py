"""The parts of an app taken apart and built again: operators, functions, decoders and encoders.

A pickled app refers to functions of this module by name.
"""

from __future__ import annotations

import types
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import timedelta
from typing import Any, NamedTuple

import msgspec

from styx.deployment.classes import Reduced
from styx.model.agenda import Retry
from styx.model.function_spec import NO_HINTS
from styx.model.graph import Graph
from styx.model.graph_check import CheckedGraph
from styx.model.operator import Operator
from styx.model.partition_function import declared_function
from styx.relational.table import Table


def make_function(
    code: types.CodeType, module: types.ModuleType, closure: tuple[types.CellType, ...] | None
) -> types.FunctionType:
    """A function whose globals are those of `module`; `set_function` completes it."""
    return types.FunctionType(code, vars(module), code.co_name, None, closure)


def set_function(function: types.FunctionType, state: tuple[dict[str, Any], dict[str, Any]]) -> None:
    """Gives a function its attributes, its module the globals that it uses, and its cells their contents."""
    attributes, details = state
    vars(function).update(attributes)
    vars_of_module = details.pop("__globals__")
    function.__globals__.update(vars_of_module)
    cells = details.pop("__closure__")
    for cell, packed in zip(function.__closure__ or (), cells or (), strict=True):
        try:
            cell.cell_contents = packed.cell_contents
        except ValueError:
            continue  # an empty cell: the name was not bound yet
    details.pop("_cloudpickle_submodules")  # they are loaded by now, which is what they were packed for
    for name, value in details.items():
        setattr(function, name, value)


class LateDecoder:
    """A msgspec decoder that is made when it is first used: earlier, its type might lack the types of its fields."""

    def __init__(self, make: Callable[..., Any], options: dict[str, Any]) -> None:
        self._make = make
        self._options = options
        self._decoder: Any = None

    def decoder(self) -> Any:
        """The decoder itself."""
        if self._decoder is None:
            self._decoder = self._make(**self._options)
        return self._decoder

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self.decoder(), name)


def reduce_decoder(decoder: Any) -> Reduced:
    """Builder and arguments of a `msgspec` decoder."""
    return (LateDecoder, (type(decoder), _options(decoder, "type", "strict", "dec_hook", "ext_hook", "float_hook")))


def reduce_encoder(encoder: Any) -> Reduced:
    """Builder and arguments of a `msgspec` encoder."""
    return (make_of_options, (type(encoder), _options(encoder, "enc_hook", "decimal_format", "uuid_format", "order")))


def reduce_meta(meta: msgspec.Meta) -> Reduced:
    """Builder and arguments of the constraints in an `Annotated` type."""
    names = [name for name in dir(meta) if not name.startswith("_") and getattr(meta, name) is not None]
    return (make_of_options, (type(meta), _options(meta, *names)))


def make_of_options(make: Callable[..., Any], options: dict[str, Any]) -> Any:
    """An object that is made of options alone."""
    return make(**options)


def _options(codec: Any, *names: str) -> dict[str, Any]:
    return {name: getattr(codec, name) for name in names if hasattr(codec, name)}


class Declaration(NamedTuple):
    """The arguments of `Operator`, and its registered functions in their order. `hints` are the functions' by name,
    those that are given, `tables` are its tables in their order, `subscriptions` the arguments of `Operator.on` with
    the functions' names, and `crons` (function, expression, key, attempts, first pause in microseconds); packages of
    releases that knew none lack them.
    """

    name: str
    n_partitions: int | None
    key_type: Any
    state_type: Any
    partition_key: Callable[[Any], Any] | None
    functions: list[Callable[..., Any]]
    migrate: Callable[[Any], Any] | None = None
    hints: Mapping[str, dict[str, bool]] = {}
    partition_functions: Sequence[Callable[..., Any]] = ()
    tables: tuple[Table, ...] = ()
    ttl: timedelta | None = None
    subscriptions: tuple[dict[str, Any], ...] = ()
    crons: tuple[tuple[str, str, Any, int, int], ...] = ()


def declaration(operator: Operator) -> Declaration:
    """The declaration of `operator`."""
    key_type = operator.key_type
    functions = [*operator.functions.items(), *operator.partitions.functions.items()]
    return Declaration(
        operator.name,
        operator.n_partitions,
        key_type.scalar or key_type.parts,
        operator.state_type,
        operator.key_space.partition_key,
        [function.func for function in operator.functions.values()],
        None if operator.migration is None else operator.migration.function,
        {name: each.hints._asdict() for name, each in functions if each.hints != NO_HINTS},
        [declared_function(function) for function in operator.partitions.functions.values()],
        tuple(operator.tables.values()),
        timedelta(microseconds=operator.ttl_us) if operator.ttl_us else None,
        tuple(each.given for each in operator.subscriptions),
        tuple(
            (cron.function, cron.expression, cron.key, cron.attempts, cron.first_pause_us)
            for cron in operator.crons.values()
        ),
    )


def graph_declaration(graph: CheckedGraph) -> tuple[Any, ...]:
    """The arguments of `Graph` and of its methods, with functions as texts."""
    edges = [(str(caller), str(callee)) for caller, callee in graph.edges]
    publishes = [(str(function), event) for function, event in graph.publishes]
    return graph.name, str(graph.start), edges, [*map(str, graph.terminals)], publishes


def declared_graph(declared: tuple[Any, ...]) -> Graph:
    """The graph of `graph_declaration`."""
    name, start, edges, terminals, publishes = declared
    graph = Graph(name, start=start)
    for caller, callee in edges:
        graph.edge(caller, callee)
    for each in terminals:
        graph.terminal(each)
    for function, event in publishes:
        graph.publishes(function, event)
    return graph


def table_declaration(table: Table) -> dict[str, Any]:
    """The arguments of `Operator.table`, by name, and as "views" the table's views; of a view those of `Table.view`."""
    if table.view_rule is not None:
        return table.view_rule.given
    migrate = None if table.migration is None else table.migration.function
    given = {**table.given, "was": table.was, "migrate": migrate}
    return {**given, "views": [view.table for view in table.views]} if table.views else given


def declare(declared: Iterable[tuple[Operator, Declaration]], tables: Mapping[int, dict[str, Any]]) -> None:
    """Declares empty operators as their declarations say, with every check; `tables` are the declarations of the empty
    tables by their ids. Raises `ConfigurationError`.
    """
    pairs = list(declared)
    owners: dict[int, tuple[Operator, tuple[Table, ...]]] = {}
    for operator, one in pairs:
        Operator.__init__(
            operator,
            one.name,
            one.n_partitions,
            key_type=one.key_type,
            state_type=one.state_type,
            partition_key=one.partition_key,
            migrate=one.migrate,
            ttl=one.ttl,
        )
        owners.update({id(table): (operator, one.tables) for table in one.tables})
    made: set[int] = set()
    for table in [table for _, one in pairs for table in one.tables]:
        _declare_table(table, owners, tables, made)
    for operator, one in pairs:
        for function in one.functions:
            operator.register(**one.hints.get(function.__name__, {}))(function)
        for function in one.partition_functions:
            read_only = one.hints.get(function.__name__, {}).get("read_only", False)
            operator.register_partition(read_only=read_only)(function)
        for subscription in one.subscriptions:
            given = {**subscription}
            function = operator.functions[given.pop("function")].func
            operator.on(given.pop("event"), **given)(function)
        for name, expression, key, attempts, pause_us in one.crons:
            retry = Retry(attempts, timedelta(microseconds=pause_us))
            operator.cron(expression, key=key, retry=retry)(operator.functions[name].func)


def _declare_table(
    table: Table,
    owners: Mapping[int, tuple[Operator, tuple[Table, ...]]],
    tables: Mapping[int, dict[str, Any]],
    made: set[int],
) -> None:
    """Declares a table, and before it those that it refers to, and those that its operator had before it."""
    if id(table) in made:
        return
    made.add(id(table))
    owner, of_owner = owners[id(table)]
    parents = [reference.table for reference in tables[id(table)]["references"]]
    for earlier in (*of_owner[: of_owner.index(table)], *(each for each in parents if isinstance(each, Table))):
        _declare_table(earlier, owners, tables, made)
    given = {**tables[id(table)]}
    views: Sequence[Table] = given.pop("views", ())
    owner.declare_table(table, **given)
    for view in views:
        table.declare_view(view, **tables[id(view)])
