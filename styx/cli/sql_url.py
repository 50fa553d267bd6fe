"""`styx sql --url`: a query to a server that answers in SQL. The result goes on as it comes."""

from __future__ import annotations

import http.client
import shutil
import sys
from pathlib import Path
from typing import IO, Any, Final, NamedTuple

import msgspec

from styx.cli.exit_codes import CommandFailed
from styx.cli.gateway_request import MARGIN_SECONDS, bearer, connection_to, why
from styx.values.codec import shown

ANSWER_SECONDS_MAX: Final = 600.0
"""How long the command waits while nothing comes; the server's own limit is below it, and its line."""
_PATH: Final = "/v1/sql"
_FORMATS: Final = {"table": "arrow", "json": "jsonl", "csv": "csv", "arrow": "arrow"}


class SqlServer(NamedTuple):
    """A server's URL, and with what it is asked."""

    url: str
    credential: str | None
    authority: Path | None


def print_tables(server: SqlServer) -> None:
    """Prints the tables there are. Raises `CommandFailed`."""
    _, response = _exchange(server, "GET", None)
    for table in msgspec.json.decode(response.read())["tables"]:
        columns = ", ".join(f"{each['name']} {each['kind']}" for each in table["columns"])
        print(f"{table['schema']}.{table['name']}({columns})")


def print_result(server: SqlServer, sql: str, format: str, rows: int | None, seconds: float | None) -> None:
    """Prints a query's result, and says on standard error of which epoch it is. Raises `CommandFailed`."""
    asked = {"sql": sql, "format": _FORMATS[format], "rows": rows, "seconds": seconds}
    connection, response = _exchange(server, "POST", msgspec.json.encode(asked))
    epoch, age = response.headers["Styx-Epoch"], response.headers["Styx-Age"]
    print(f"styx: the state at the end of epoch {epoch}, which came {age} s ago", file=sys.stderr)
    out = sys.stdout.buffer
    try:
        if format == "table":
            _print_table(response, out)
        else:
            shutil.copyfileobj(response, out)
    except (OSError, http.client.HTTPException, ValueError) as error:
        if isinstance(error, BrokenPipeError):
            raise
        raise CommandFailed(f"the result ended before its end ({why(error)}): the query reached a limit") from None
    finally:
        connection.close()
    out.flush()


def _print_table(response: http.client.HTTPResponse, out: IO[bytes]) -> None:
    from styx.query.extra import require

    require("SQL as a table", "pyarrow")
    import pyarrow as pa

    from styx.query.results import FORMATS

    reader = pa.ipc.open_stream(response)
    FORMATS["table"]((reader.schema, iter(reader)), out)


def _exchange(
    server: SqlServer, method: str, body: bytes | None
) -> tuple[http.client.HTTPConnection, http.client.HTTPResponse]:
    connection, prefix = connection_to(server.url, ANSWER_SECONDS_MAX + MARGIN_SECONDS, server.authority)
    headers = {} if body is None else {"Content-Type": "application/json"}
    if server.credential is not None:
        headers["Authorization"] = "Bearer " + bearer(server.credential)
    try:
        connection.request(method, prefix + _PATH, body, headers)
        response = connection.getresponse()
    except (OSError, http.client.HTTPException) as error:
        connection.close()
        raise CommandFailed(
            f"no replica answers at {server.url}: {why(error)}. Start one: styx replica --store …"
        ) from None
    if response.status != http.client.OK:
        text = response.read()
        connection.close()
        raise CommandFailed(_told(text) or f"status {response.status} from {server.url}: {shown(text)}")
    return connection, response


def _told(body: bytes) -> str | None:
    try:
        found: Any = msgspec.json.decode(body)
        return str(found["error"]["message"])
    except (msgspec.DecodeError, KeyError, TypeError):
        return None
