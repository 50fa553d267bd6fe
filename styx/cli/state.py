"""`styx state`: prints an entity's state, lists keys, and exports tables, through a gateway or of a snapshot."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, Literal

from cyclopts import App, Parameter

from styx.cli.common_options import (
    ApiKey,
    Authority,
    EntityKey,
    GatewayUrl,
    OperatorName,
    ReplyTimeout,
    TableName,
    check_timeout,
)
from styx.cli.edit import EDIT_EXAMPLES, edit
from styx.cli.snapshot_options import SNAPSHOT_HELP, SnapshotOptions, tell, typed_wrongly
from styx.model.limits import TIMEOUT_SECONDS_DEFAULT, TIMEOUT_SECONDS_MAX

if TYPE_CHECKING:
    from styx.cli.live_export import Live
    from styx.cli.live_state import LiveGateway
    from styx.query.schema import Dataset, Schema

LiveUrl = Annotated[
    str | None,
    Parameter(help="The gateway, unless a snapshot is named; by default that of styx up here.", env_var="STYX_URL"),
]
LiveEpoch = Annotated[
    int | None, Parameter(name="--at", help="With a gateway: read the state at the end of this epoch.")
]
EXAMPLES: Final = f"""\
Examples:
  styx state get account alice
  styx state get cart alice --rows items
  styx state get order '[1,2]' --url http://shop.internal:8080
  styx state get account alice --data-dir .styx
  styx state get account alice --snapshot latest --store s3://styx/bank \\
      --s3-endpoint http://s3.internal:9000

{SNAPSHOT_HELP}
Exit codes:
  0    the state is on standard output
  1    no gateway, no reply in time, no snapshot, or the stored state does not
       fit its type
  2    rejected: no such operator or table, or a key of another type
  3    there is no such entity, and nothing is on standard output
"""
LIST_EXAMPLES: Final = f"""\
Examples:
  styx state list account --data-dir .styx
  styx state list account --prefix al --limit 10 --after alice \\
      --from file:///mnt/backups/bank
  styx state list cart/items --prefix '["ann"]' --app shop:app --data-dir .styx
  styx state list account --prefix al --url http://shop.internal:8080

{SNAPSHOT_HELP}
Exit codes:
  0    the page is on standard output; if there are more, the last line on
       standard error says how to go on
  1    no gateway, no reply in time, or the epoch of --at is not kept any more;
       no snapshot, or something in it is damaged or cannot be decoded
  2    rejected: no such operator or table, or a key of another type
"""
EXPORT_EXAMPLES: Final = f"""\
Examples:
  styx state export --format csv --out bank --data-dir .styx
  styx state export account cart/items --format parquet --out june \\
      --from s3://backups/bank --s3-endpoint http://s3.internal:9000
  styx state export account --format json --out - --data-dir .styx | head
  styx state export account --format csv --out - --url http://shop.internal:8080

{SNAPSHOT_HELP}
Exit codes:
  0    the files are whole
  1    no file: no gateway, no reply in time, or its epoch is not kept any more; no
       snapshot, or something in it is damaged or cannot be decoded
  2    rejected: no such operator or table, or --out does not fit
"""


def state(sort_key: int) -> App:
    """The group of commands `styx state`; `sort_key` is its place in the list of commands."""
    commands = App(name="state", help="Look at state, and edit it.", help_format="plaintext", sort_key=sort_key)
    commands.command(get, help_epilogue=EXAMPLES)
    commands.command(list_, name="list", help_epilogue=LIST_EXAMPLES)
    commands.command(export, help_epilogue=EXPORT_EXAMPLES)
    commands.command(edit, help_epilogue=EDIT_EXAMPLES)
    return commands


def get(
    operator: OperatorName,
    key: EntityKey,
    /,
    *,
    url: GatewayUrl = None,
    rows: TableName = None,
    timeout: ReplyTimeout = TIMEOUT_SECONDS_DEFAULT,
    api_key: ApiKey = None,
    ca: Authority = None,
    place: SnapshotOptions = SnapshotOptions(),  # noqa: B008 - it cannot change
) -> int:
    """Print one entity's state as JSON, or its rows in a table.

    The gateway reads it in a transaction, which sees all that was answered before.
    With --store, --from, --data-dir or --snapshot the command reads a snapshot, and
    nothing needs to be running. Give a key that begins with a dash and is no number
    after --.
    """
    if place.wanted:
        return _get_of_snapshot(operator, key, rows, place)

    from styx.cli.gateway_request import GatewayRead, NoReply, get_entity, read_outcome, unread_outcome
    from styx.cli.run_directory import gateway_url

    check_timeout(timeout, TIMEOUT_SECONDS_MAX)
    url = gateway_url(url)
    try:
        outcome = read_outcome(get_entity(url, GatewayRead(operator, key, timeout, api_key, ca, rows)), url)
    except NoReply as error:
        outcome = unread_outcome(str(error))
    return outcome.told()


def _get_of_snapshot(operator: str, key: str, rows: str | None, place: SnapshotOptions) -> int:
    from styx.cli.exit_codes import ABSENT, SUCCESS
    from styx.cli.gateway_request import CallOutcome
    from styx.query.entities import absent, entity_json, rows_json

    with typed_wrongly():
        source, schema = place.open()
        if rows is not None:
            found: bytes | None = rows_json(source, schema, operator, rows, key)
        else:
            found = entity_json(source, schema, operator, key)
        if found is None:
            return CallOutcome("", f"absent: {absent(schema.dataset(operator), key)}", ABSENT).told()
    return CallOutcome(found.decode(), "", SUCCESS).told()


def list_(
    operator: Annotated[str, Parameter(help="The operator's name, such as account; for rows of a table, cart/items.")],
    /,
    *,
    prefix: Annotated[
        str, Parameter(help="Only keys that begin with it: text, or a JSON array of the first parts of a key.")
    ] = "",
    limit: Annotated[
        int | None, Parameter(help="Entries of the page; 100 by default, 10000 at most.", show_default=False)
    ] = None,
    after: Annotated[str | None, Parameter(help="Begin behind this key.")] = None,
    url: LiveUrl = None,
    at: LiveEpoch = None,
    freshness: Annotated[
        Literal["latest", "strict"] | None,
        Parameter(help="With a gateway: strict sees all that was answered before, latest may miss the last of it."),
    ] = None,
    timeout: ReplyTimeout = TIMEOUT_SECONDS_DEFAULT,
    api_key: ApiKey = None,
    ca: Authority = None,
    place: SnapshotOptions = SnapshotOptions(),  # noqa: B008 - it cannot change
) -> None:
    """Print the entities of an operator, or the rows of a table.

    With --url the gateway reads them at the end of one epoch, and no transaction
    waits. With --store, --from or --data-dir the command reads a snapshot. A line
    has the key and the value as JSON: {"key": …, "value": …}. Lines are in order of
    their keys: texts by code point, numbers by size. The key of a row is that of
    its entity, and then the primary key.
    """
    from styx.cli.backup import progress
    from styx.cli.exit_codes import usage_error
    from styx.query.entities import PAGE_DEFAULT, PAGE_MAX, page

    limit = PAGE_DEFAULT if limit is None else limit
    if not 1 <= limit <= PAGE_MAX:
        raise usage_error(f"--limit is a number from 1 to {PAGE_MAX}, got {limit}; styx state export gives all")
    if _is_live(url, place):
        _list_live(_gateway(url, timeout, api_key, ca), operator, prefix, after, limit, at, freshness)
        return
    if at is not None or freshness is not None:
        raise usage_error("--at and --freshness are for a gateway (--url): a snapshot has its epoch")
    with typed_wrongly():
        source, schema = place.open()
        found = page(source, schema.dataset(operator), prefix, after, limit)
    for entry in found.entries:
        print(entry.line.decode())
    tell(schema)
    if found.after is not None:
        import shlex

        sys.stdout.flush()
        progress(f"there are more: --after {shlex.quote(found.after)}")


def _is_live(url: str | None, place: SnapshotOptions) -> bool:
    """Whether a gateway is asked: one is named, or `styx up` runs here, and no snapshot is."""
    from styx.cli.run_directory import local_cluster

    return not place.wanted and (url is not None or (place.store is None and local_cluster() is not None))


def _gateway(url: str | None, timeout: float, api_key: str | None, ca: Path | None) -> LiveGateway:
    from styx.cli.live_state import LiveGateway
    from styx.cli.run_directory import gateway_url

    check_timeout(timeout, TIMEOUT_SECONDS_MAX)
    return LiveGateway(gateway_url(url), timeout, api_key, ca)


def _live(gateway: LiveGateway, app: str | None) -> Live:
    from styx.cli.app_target import load_app
    from styx.cli.live_export import of_document, of_live_app

    return of_document(gateway) if app is None else of_live_app(gateway, load_app(app))


def _list_live(
    gateway: LiveGateway,
    listed: str,
    prefix: str,
    after: str | None,
    limit: int,
    at: int | None,
    freshness: str | None,
) -> None:
    import shlex

    from styx.cli.backup import progress
    from styx.cli.exit_codes import usage_error

    if at is not None and freshness is not None:
        raise usage_error("--at is an epoch, which has no --freshness: give one of them")
    found = gateway.page(listed, prefix, after, limit, at, freshness)
    for entry in found.entries:
        print(bytes(entry).decode())
    sys.stdout.flush()
    progress(f"the end of epoch {found.epoch} at {gateway.url}")
    if found.after is not None:
        progress(f"there are more: --after {shlex.quote(found.after)} --at {found.epoch}")


def export(
    *operators: Annotated[str, Parameter(help="Operators, and tables as cart/items; everything by default.")],
    format: Annotated[Literal["json", "csv", "parquet"], Parameter(help="json has an object a line.")],
    out: Annotated[
        str,
        Parameter(help="A directory; for one table also a file, or - for standard output.", allow_leading_hyphen=True),
    ],
    url: LiveUrl = None,
    at: LiveEpoch = None,
    timeout: ReplyTimeout = TIMEOUT_SECONDS_DEFAULT,
    api_key: ApiKey = None,
    ca: Authority = None,
    place: SnapshotOptions = SnapshotOptions(),  # noqa: B008 - it cannot change
) -> None:
    """Write operators and tables into files.

    With --url the gateway reads them page by page, all at the end of one epoch.
    With --store, --from or --data-dir the command reads a snapshot. A row has the
    columns of the entity's key (key, key_2 and so on), and then those of the value.
    All files are of one moment. A file gets its name only when it is whole.
    """
    from styx.cli.backup import progress
    from styx.cli.exit_codes import usage_error
    from styx.query.export import export as exported
    from styx.query.export import export_pieces

    with typed_wrongly():
        if _is_live(url, place):
            live = _live(_gateway(url, timeout, api_key, ca), place.app)
            schema, datasets = live.schema, _chosen(live.schema, operators)
            done = export_pieces(live.pieces(datasets, at), datasets, format, out)
        elif at is not None:
            raise usage_error("--at is for a gateway (--url): a snapshot has its epoch")
        else:
            source, schema = place.open()
            done = exported(source, _chosen(schema, operators), format, out)
    tell(schema)
    for each in done:
        words = f"{each.name}: {each.rows} rows"
        if each.file is None:
            progress(words)
        else:
            print(f"{words}, {each.file}")


def _chosen(schema: Schema, operators: tuple[str, ...]) -> list[Dataset]:
    """The datasets of these names, all without any; raises `UnknownOperator`."""
    return [schema.dataset(name) for name in dict.fromkeys(operators)] or list(schema.datasets.values())
