"""`styx sql`: a query in SQL over the tables of a snapshot."""

from __future__ import annotations

import sys
from typing import Annotated, Final, Literal

from cyclopts import Parameter

from styx.cli.common_options import ApiKey, Authority
from styx.cli.snapshot_options import SNAPSHOT_HELP, SnapshotOptions, tell, typed_wrongly

EXAMPLES: Final = f"""\
Examples:
  styx sql --data-dir .styx
  styx sql "select key, value->>'balance' from account.state" \\
      --data-dir .styx
  styx sql "select count(*) from account.state" --url http://10.0.0.9:8090
  styx sql 'select seller, sum(price) from cart.items group by seller' \\
      --app shop:app --format csv --store s3://styx/shop \\
      --s3-endpoint http://s3.internal:9000

{SNAPSHOT_HELP}
Exit codes:
  0    the result is on standard output
  1    no result: the query is wrong or has reached a limit, or there is no
       snapshot
  2    wrong usage, or the extra sql is not installed
  130  interrupted
"""  # noqa: S608 - examples


def sql(
    query: Annotated[
        str | None, Parameter(help="One SELECT. Without it, the tables and their columns are listed.")
    ] = None,
    /,
    *,
    format: Annotated[
        Literal["table", "json", "csv", "arrow"], Parameter(help="json has an object a line; arrow is an IPC stream.")
    ] = "table",
    rows: Annotated[
        int | None,
        Parameter(
            help="Rows of a result. Of a snapshot 100000 by default; a server has its own limit.", show_default=False
        ),
    ] = None,
    seconds: Annotated[
        float | None,
        Parameter(
            help="Seconds that the query may take. Of a snapshot 60 by default; a server has its own limit.",
            show_default=False,
        ),
    ] = None,
    memory: Annotated[
        int | None,
        Parameter(
            help="Of a snapshot: MiB that the query may take, with the tables that it reads; 1024 by default.",
            show_default=False,
        ),
    ] = None,
    url: Annotated[
        str | None, Parameter(help="Ask a replica or styx dev at http://HOST:PORT, instead of a snapshot.")
    ] = None,
    api_key: ApiKey = None,
    ca: Authority = None,
    place: SnapshotOptions = SnapshotOptions(),  # noqa: B008 - it cannot change
) -> None:
    """Ask a snapshot, or a replica, in SQL (DuckDB's).

    The values of an operator are the table OPERATOR.state. The rows of its table T
    are the table OPERATOR.T. Their columns are those of styx state export. A query
    sees all tables at one moment. It can change nothing, and has no files, no
    settings, no extensions and no network.
    """
    from styx.cli.exit_codes import usage_error
    from styx.query.extra import require
    from styx.query.relations import relations

    if format == "arrow" and query is not None and sys.stdout.isatty():
        raise usage_error("an Arrow stream is nothing for a terminal: redirect it, or choose another --format")
    for option, number in (("--rows", rows), ("--seconds", seconds), ("--memory", memory)):
        if number is not None and not 0 < number < 2**31:
            raise usage_error(f"{option} is a number above 0, got {number:g}")
    if url is not None:
        if memory is not None or place.wanted:
            raise usage_error("--url asks a server, which has its own state and memory: give no snapshot, no --memory")
        from styx.cli.sql_url import SqlServer, print_result, print_tables

        server = SqlServer(url, api_key, ca)
        if query is None:
            print_tables(server)
        else:
            print_result(server, query, format, rows, seconds)
        return
    with typed_wrongly():
        source, schema = place.open()
    if query is None:
        for each in relations(schema):
            columns = ", ".join(f"{name} {kind}" for name, kind in each.table.columns)
            print(f"{each.table.schema}.{each.table.name}({columns})")
        return

    require("SQL", "duckdb", "pyarrow")
    from styx.query.service import MEMORY_MIB_DEFAULT, ROWS_DEFAULT, SECONDS_DEFAULT, Asked, Limits
    from styx.query.sql import Query

    limits = Limits(memory or MEMORY_MIB_DEFAULT, seconds or SECONDS_DEFAULT, rows or ROWS_DEFAULT)
    with Query(source, schema, Asked(query), limits) as running:
        from styx.query.results import FORMATS

        FORMATS[format](running.result(), sys.stdout.buffer)
        sys.stdout.buffer.flush()
    tell(schema)
