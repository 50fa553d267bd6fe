"""The process that runs one query: `python -m styx.query.sql_process SOCKET`, on standard input and output, by
`frames`; descriptors of shared rows come on the socket of that number.

It gets the tables' rows and the query from the command that has started it, and knows neither a store nor an app. What
it may do is taken from it before the query is looked at: files, other databases, extensions, the network, and changes
of settings, by DuckDB's settings; memory beyond its limit and the writing of files, by the kernel's. Its parent ends it
when its time is over. So a query costs its sender only.
"""

from __future__ import annotations

import resource
import socket
import sys
from collections.abc import Iterable, Iterator
from itertools import chain
from typing import IO, Any, Final, NamedTuple

import duckdb
import msgspec
import pyarrow as pa
from duckdb.sqltypes import DuckDBPyType

from styx.query.arrow import arrow_schema, ipc_stream, marked
from styx.query.fields import JSON, Field
from styx.query.frames import BEGINS, END, FAILED, HEADER, NEEDS, ROWS, SHARED, Closed, FrameReader, write_frame
from styx.query.header import Header, Needs, header_of
from styx.query.named_columns import named_columns
from styx.query.parameters import nodes, parameter_types
from styx.query.relations import Table, quoted
from styx.query.service import PARAMETER_TYPES
from styx.query.shared_rows import take

RESULT_ROWS: Final = 2_048
"""Rows of a result that are made at once."""
FRAME_BYTES: Final = 2**20
"""Rows of a result that take more are sent in halves, down to one."""
UNCOUNTED_BYTES: Final = 256 * 2**20
"""What the process may take beyond its limit, for what DuckDB does not count and for itself."""
MARGIN_SECONDS: Final = 2
"""By which the kernel's limit of the processor's time is above the parent's of time."""
_CONFIG: Final[dict[str, Any]] = {
    "autoinstall_known_extensions": False,
    "autoload_known_extensions": False,
    "allow_persistent_secrets": False,
    "python_enable_replacements": False,
    "temp_directory": "",
    "threads": 1,
}
_WRITES: Final = "_QUERY_NODE"
"""How the parser's types of what writes within WITH end, such as `INSERT_QUERY_NODE`."""
_PARSE: Final = "SELECT json_serialize_sql($1)"
_INCOMING: Final = "styx incoming"
"""No table has this name, which holds a blank."""
_ARROWLESS: Final = frozenset({"uhugeint", "bit", "bignum", "time with time zone", "variant", "geometry"})
"""Types that Arrow has only as bytes, as a smaller number, or without their zone."""
_LOCKS: Final = ("SET TimeZone = 'UTC'", "SET allow_community_extensions = false", "SET enable_external_access = false")


class Refused(Exception):
    """The query is none that may run."""


def check_statement(connection: duckdb.DuckDBPyConnection, sql: str) -> None:
    """Raises `Refused` unless it is one statement that selects."""
    statements = connection.extract_statements(sql)
    if len(statements) != 1:
        raise Refused(f"one SELECT is expected, and these are {len(statements)} statements")
    kind = str(statements[0].type).rpartition(".")[2]
    if kind != "SELECT":
        raise Refused(f"only a SELECT may run, and this is {kind}: a snapshot is read only")


class Named(NamedTuple):
    """What a query names: the numbers of tables, their columns as `named_columns`, and its parameters' types."""

    tables: list[int]
    columns: list[str] | None
    parameters: list[str]


def named(connection: duckdb.DuckDBPyConnection, sql: str, tables: list[Table]) -> Named:
    """The tables that the query names; raises `Refused` and `duckdb.Error`.

    A table that is read in another way, such as by `query_table`, is not among them, and is not there for the query.
    """
    check_statement(connection, sql)
    [parsed] = connection.execute(_PARSE, [sql]).fetchall()
    try:
        tree = msgspec.json.decode(parsed[0])
    except RecursionError:
        raise Refused("the query is nested too deeply") from None
    for node in nodes(tree):
        kind = str(node.get("type"))
        if kind.endswith(_WRITES):
            raise Refused(
                f"only a SELECT may run, and this has {kind.removesuffix(_WRITES)} in it: a snapshot is read only"
            )
    names = {
        ((node["schema_name"] or "main").casefold(), node["table_name"].casefold())
        for node in nodes(tree)
        if node.get("type") == "BASE_TABLE"
    }
    found = [at for at, each in enumerate(tables) if (each.schema.casefold(), each.name.casefold()) in names]
    try:
        return Named(found, named_columns(tree), parameter_types(tree, [tables[at] for at in found]))
    except ValueError as error:
        raise Refused(str(error)) from None


def connected() -> duckdb.DuckDBPyConnection:
    """A database of its own, which has parsed a query already: the first one takes longer."""
    connection = duckdb.connect(":memory:", config=_CONFIG)
    connection.execute(_PARSE, ["SELECT 1"]).fetchall()
    return connection


def _lock(connection: duckdb.DuckDBPyConnection) -> None:
    for statement in (*_LOCKS, "SET lock_configuration = true"):
        connection.execute(statement)


def _create(connection: duckdb.DuckDBPyConnection, table: Table, rows: Iterable[pa.RecordBatch]) -> None:
    """Creates a table with these rows."""
    reader = pa.RecordBatchReader.from_batches(_arrow_schema(table), rows)
    connection.register(_INCOMING, reader)
    _declare(connection, "TABLE", table, _INCOMING)
    connection.unregister(_INCOMING)


def _show(connection: duckdb.DuckDBPyConnection, table: Table, rows: list[pa.RecordBatch], number: int) -> None:
    """Shows rows as a table where they are, without a copy."""
    source = f"{_INCOMING} {number}"
    connection.register(source, pa.Table.from_batches(rows, _arrow_schema(table)))
    _declare(connection, "VIEW", table, source)


def _declare(connection: duckdb.DuckDBPyConnection, kind: str, table: Table, source: str) -> None:
    casts = [quoted(name) + ("::JSON" if kind == JSON else "") for name, kind in table.columns]
    columns = ", ".join(f"{cast} AS {quoted(name)}" for cast, (name, _) in zip(casts, table.columns, strict=True))
    place = f"{quoted(table.schema)}.{quoted(table.name)}"
    connection.execute(f"CREATE SCHEMA IF NOT EXISTS {quoted(table.schema)}")
    connection.execute(f"CREATE {kind} {place} AS SELECT {columns} FROM {quoted(source)}")  # noqa: S608 - names are quoted


def _declare_key(connection: duckdb.DuckDBPyConnection, table: Table) -> None:
    """The catalog tells of the key of a table that has no rows here; with rows it would be an index to build."""
    if table.key:
        key = ", ".join(map(quoted, table.key))
        connection.execute(f"ALTER TABLE {quoted(table.schema)}.{quoted(table.name)} ADD PRIMARY KEY ({key})")


def _arrow_schema(table: Table) -> pa.Schema:
    return arrow_schema([Field(*column) for column in table.columns])


def confine(memory_bytes: int) -> None:
    """From now on this process may take so much more memory, and write no file."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
    present = _data_bytes()
    if present is not None:
        most = present + memory_bytes + UNCOUNTED_BYTES
        resource.setrlimit(resource.RLIMIT_DATA, (most, most))


def _limit_time(seconds: float) -> None:
    """The kernel ends this process after so much time of the processor: its parent may have been killed meanwhile."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    most = int(used.ru_utime + used.ru_stime + seconds) + MARGIN_SECONDS
    resource.setrlimit(resource.RLIMIT_CPU, (most, most))


def _data_bytes() -> int | None:
    """What this process may write to of its memory, and does not share; None where the kernel does not say it."""
    try:
        with open("/proc/self/statm", encoding="ascii") as file:
            return int(file.read().split()[5]) * resource.getpagesize()
    except FileNotFoundError:
        return None


def serve(incoming: FrameReader, given: socket.socket, out: IO[bytes]) -> None:
    """Runs the query that comes, and writes its result. Descriptors come on `given`."""
    connection = connected()
    try:
        for kind, data in _answered(connection, incoming, given):
            write_frame(out, kind, data)
    except (Refused, duckdb.Error, pa.ArrowException) as error:
        write_frame(out, FAILED, str(error).encode())
    except (Closed, EOFError):
        pass  # whoever has asked has ended
    except MemoryError:
        write_frame(out, FAILED, b"Out of Memory Error: the process has reached its limit")


def _answered(
    connection: duckdb.DuckDBPyConnection, incoming: FrameReader, given: socket.socket
) -> Iterator[tuple[bytes, bytes]]:
    kind, data = incoming.read()
    assert kind == HEADER
    header = header_of(data)
    confine(header.memory_bytes)
    connection.execute(f"SET memory_limit = '{header.memory_bytes}B'")
    tables, columns, parameters = named(connection, header.sql, header.tables)
    read = [] if header.describe else tables
    yield NEEDS, msgspec.json.encode(Needs(read, columns))
    for at in range(len(header.tables)) if header.catalog else tables:
        if at in read:
            _load(connection, header, at, incoming, given)
        else:
            _create(connection, header.tables[at], [])
            _declare_key(connection, header.tables[at])
    for statement in header.prelude:
        connection.execute(statement)
    _lock(connection)
    yield BEGINS, b""
    _limit_time(header.seconds)
    values = [None] * len(parameters) if header.describe else header.parameters
    relation = _carried(connection.sql(header.sql, params=values))
    reader = (relation.limit(0) if header.describe else relation).to_arrow_reader(RESULT_ROWS)
    schema = marked(reader.schema, [str(each) for each in relation.types])
    if header.describe:
        schema = schema.with_metadata({PARAMETER_TYPES: msgspec.json.encode(parameters)})
    yield ROWS, ipc_stream(schema, None)
    for batch in _batches(reader):
        for part in _parts(pa.RecordBatch.from_arrays(batch.columns, schema=schema)):
            yield ROWS, ipc_stream(schema, part)
    yield END, b""


def _carried(relation: duckdb.DuckDBPyRelation) -> duckdb.DuckDBPyRelation:
    """The result, with its columns of types that Arrow lacks as text."""
    lacking = [_is_arrowless(each) for each in relation.types]
    if not any(lacking):
        return relation
    columns = [
        f"#{at}{'::VARCHAR' if lacks else ''} AS {quoted(name)}"
        for at, (lacks, name) in enumerate(zip(lacking, relation.columns, strict=True), start=1)
    ]
    return relation.project(", ".join(columns))


def _is_arrowless(kind: DuckDBPyType) -> bool:
    if kind.id in _ARROWLESS:
        return True
    nested = kind.children if kind.id in ("list", "array", "struct", "map", "union") else []
    return any(_is_arrowless(each) for _, each in nested if isinstance(each, DuckDBPyType))


def _batches(reader: pa.RecordBatchReader) -> Iterator[pa.RecordBatch]:
    """Those of the result. Arrow makes an `OSError` of an error of DuckDB's that comes behind the first rows."""
    while True:
        try:
            yield reader.read_next_batch()
        except StopIteration:
            return
        except OSError as error:
            raise Refused(str(error)) from None


def _parts(batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    """The batch, in parts of at most `FRAME_BYTES` or one row."""
    if batch.nbytes <= FRAME_BYTES or batch.num_rows == 1:
        yield batch
        return
    half = batch.num_rows // 2
    yield from _parts(batch.slice(0, half))
    yield from _parts(batch.slice(half))


def _load(
    connection: duckdb.DuckDBPyConnection, header: Header, at: int, incoming: FrameReader, given: socket.socket
) -> None:
    """Makes a table of the rows that come. Shared ones are read where they are; where the catalog is asked for, they
    are copied, because it shall have a table, and no view.
    """
    table = header.tables[at]
    first = incoming.read()
    if first[0] != SHARED:
        _create(connection, table, _incoming(incoming, first))
        return
    rows: list[pa.RecordBatch] = []
    kind, data = first
    while kind == SHARED:
        rows += take(given, int(data))
        kind, data = incoming.read()
    assert kind == END
    if header.catalog:
        _create(connection, table, rows)
    else:
        _show(connection, table, rows, at)


def _incoming(frames: FrameReader, first: tuple[bytes, bytes]) -> Iterator[pa.RecordBatch]:
    """The batches of one table, of which the first frame has come."""
    for kind, data in chain([first], iter(frames.read, None)):
        if kind == END:
            return
        assert kind == ROWS
        yield from pa.ipc.open_stream(data)


def main() -> None:
    """Serves the one query, on standard input and output."""
    # The rows of a slot of a table are behind a descriptor each.
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    with socket.socket(fileno=int(sys.argv[1])) as given:
        serve(FrameReader(sys.stdin.fileno(), sys.maxsize), given, sys.stdout.buffer)


if __name__ == "__main__":
    main()
