"""`styx replica`: a process beside a cluster that answers in SQL, over the newest snapshot of its store, or over its
closed epochs as they come.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

from cyclopts import Parameter

from styx.cli.common_options import CLUSTER_DEFAULT, ClusterName, DrainSeconds, HttpHost, HttpPort, check_drain
from styx.cli.front_options import FrontOptions
from styx.cli.store_options import StoreOptions, secrets_help
from styx.store.stores import USAGE

if TYPE_CHECKING:
    from styx.postgres.serving import PostgresOptions
    from styx.query.schema import Schema
    from styx.query.source import Place
    from styx.replica.cluster import Cluster
    from styx.replica.process import ReplicaProcess
    from styx.schema.description import AppDescription

MIB: Final = 2**20
PORT_DEFAULT: Final = 8090
_log = logging.getLogger("styx.replica")
FILES_SHARE: Final = 2
"""Of the file descriptors that the process may have, one of so many is for rows in memory."""
EXAMPLES: Final = f"""\
Examples:
  styx replica --data-dir .styx
  styx replica --store s3://styx/shop --s3-endpoint http://s3.internal:9000
  styx replica --store s3://styx/shop --coordinator 10.0.0.7:7070
  styx sql "select count(*) from account.state" --url http://127.0.0.1:8090
  styx replica --data-dir .styx --postgres 127.0.0.1:5432 \\
      --postgres-users users.txt
  psql "host=127.0.0.1 user=ann dbname=any"

In the environment only:
{secrets_help("--store")}
      They need not be allowed to write.
  STYX_SECRET, or STYX_SECRET_FILE    the cluster's secret: needed with
      --coordinator; with it the app's signature is checked
  STYX_TLS_CERTIFICATE, STYX_TLS_KEY, STYX_TLS_AUTHORITY    PEM files, for TLS
      between processes of the cluster
Exit codes:
  0    stopped by Ctrl-C or SIGTERM, results under way finished
  1    it cannot go on
  2    an option is wrong, or the extra sql is not installed
"""  # noqa: S608 - examples


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class FollowOptions:
    """Whose snapshots and epochs are followed, and the types that decode them."""

    store: Annotated[
        str | None, Parameter(name="--store", help=f"A cluster's store: {USAGE}.", env_var="STYX_STORE")
    ] = None
    store_options: StoreOptions = field(default_factory=dict)
    coordinator: Annotated[
        str | None,
        Parameter(
            help="The HOST:PORT of the coordinator of --store's cluster: closed epochs are followed as they come.",
            env_var="STYX_COORDINATOR",
        ),
    ] = None
    cluster: ClusterName = CLUSTER_DEFAULT
    data_dir: Annotated[Path | None, Parameter(help="An embedded engine's data directory, such as .styx.")] = None
    app: Annotated[
        str | None,
        Parameter(help="The app whose types decode values and rows, as bank:app. Without: plain data."),
    ] = None


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class ReplicaLimits:
    """What the replica and its queries may use."""

    memory: Annotated[
        int, Parameter(help="MiB of the encoded state, about; a larger state is not loaded.", env_var="STYX_MEMORY")
    ] = 4_096
    rows_memory: Annotated[
        int, Parameter(help="MiB of decoded rows that are kept for queries.", env_var="STYX_ROWS_MEMORY")
    ] = 2_048
    running: Annotated[
        int | None,
        Parameter(help="Queries that run at once; one for each core by default.", env_var="STYX_QUERIES_RUNNING"),
    ] = None
    waiting: Annotated[
        int, Parameter(help="Queries in line behind them; more are refused.", env_var="STYX_QUERIES_WAITING")
    ] = 32
    query_memory: Annotated[
        int, Parameter(help="MiB that a query may take, beside the rows that it reads.", env_var="STYX_QUERY_MEMORY")
    ] = 512
    query_seconds: Annotated[float, Parameter(help="Seconds that a query may take.", env_var="STYX_QUERY_SECONDS")] = (
        10.0
    )
    query_rows: Annotated[int, Parameter(help="Rows that a result may have.", env_var="STYX_QUERY_ROWS")] = 100_000


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class PostgresPort:
    """A second port, for clients of PostgreSQL."""

    address: Annotated[
        str | None,
        Parameter(
            name="--postgres",
            help="HOST:PORT on which PostgreSQL's clients are served, such as 127.0.0.1:5432; none by default.",
            env_var="STYX_POSTGRES",
        ),
    ] = None
    users: Annotated[
        Path | None,
        Parameter(
            name="--postgres-users",
            help="With --postgres: the file of users, of styx keys postgres; read again when it changes.",
            env_var="STYX_POSTGRES_USERS",
        ),
    ] = None
    certificate: Annotated[
        Path | None,
        Parameter(
            name="--postgres-cert",
            help="With --postgres: PEM certificate of that port, which then requires TLS.",
            env_var="STYX_POSTGRES_CERT",
        ),
    ] = None
    key: Annotated[
        Path | None,
        Parameter(name="--postgres-key", help="PEM key of --postgres-cert.", env_var="STYX_POSTGRES_KEY"),
    ] = None


def replica(
    *,
    follow: FollowOptions = FollowOptions(),
    limits: ReplicaLimits = ReplicaLimits(),
    host: Annotated[str, Parameter(help="Address to listen on; 0.0.0.0 for all.", env_var="STYX_HOST")] = "127.0.0.1",
    port: Annotated[int, Parameter(help="Port to listen on; 0 takes a free one.", env_var="STYX_PORT")] = PORT_DEFAULT,
    name: Annotated[
        str | None, Parameter(help="Its name in logs; host and process id by default.", env_var="STYX_NAME")
    ] = None,
    front: FrontOptions | None = None,
    postgres: PostgresPort = PostgresPort(),
    http_host: HttpHost = "127.0.0.1",
    http_port: HttpPort = None,
    drain: DrainSeconds = 0.0,
) -> None:
    """Answer queries in SQL beside a cluster.

    It follows the snapshots in the cluster's store, and keeps the newest in memory.
    With --coordinator it also follows the epochs that the workers close, as they
    come; no worker waits for it. POST /v1/sql runs a query, GET /v1/sql lists the
    tables, GET /v1/sql/watch sends a result whenever it has changed, and /sql is a
    page to type a query in. Whoever may ask sees all tables. /healthz, /readyz,
    /status and /metrics are on the same port. With --postgres a second port serves
    PostgreSQL's clients, to the users of a file of its own.
    """
    from styx.cli.exit_codes import usage_error
    from styx.query.extra import require

    numbers = {
        "--memory": limits.memory,
        "--rows-memory": limits.rows_memory,
        "--running": 1 if limits.running is None else limits.running,
        "--query-memory": limits.query_memory,
        "--query-seconds": limits.query_seconds,
        "--query-rows": limits.query_rows,
    }
    for option, number in numbers.items():
        if not 0 < number < 2**31:
            raise usage_error(f"{option} is a number above 0, got {number:g}")
    if not 0 <= limits.waiting < 2**31:
        raise usage_error(f"--waiting is a number from 0 on, got {limits.waiting}")
    check_drain(drain)
    if (follow.store is None) == (follow.data_dir is None):
        raise usage_error("say whose snapshots: --store, or --data-dir; and not both")
    if follow.coordinator is not None and follow.store is None:
        raise usage_error("--coordinator is of a cluster: give the --store of that coordinator, and no --data-dir")
    if front is not None and front.webhook:
        raise usage_error("--webhook means nothing here: a replica takes no events")
    require("SQL", "duckdb", "pyarrow")
    port_of_postgres = _postgres(postgres, limits)

    from styx.cli.cluster_process import run_process, serve_replica
    from styx.cli.cluster_setup import default_name
    from styx.cli.front_options import front_of, only_here
    from styx.cli.snapshot_options import secret_if_given
    from styx.cluster.facts_access import tokens_for
    from styx.cluster.facts_server import FactsAddress

    secret = secret_if_given()
    if http_port is not None and secret is None and not only_here(http_host):
        raise usage_error("--http-host is reached from other machines: give STYX_SECRET, of which its token is made")
    tokens = () if secret is None else tokens_for(http_host, secret, os.environ)
    before = front_of(front or FrontOptions(), host)
    facts = FactsAddress(http_host, http_port, tokens)
    open_place, schema_of = _open(follow, secret), _schema_of(follow)
    name = name or default_name()
    cluster_of = _cluster(follow, name)

    def make() -> ReplicaProcess:
        return _process(open_place, schema_of, limits, cluster_of)

    run_process(name, serve_replica(make, host, port, facts, before, drain, port_of_postgres))


def _postgres(given: PostgresPort, limits: ReplicaLimits) -> PostgresOptions | None:
    """The PostgreSQL port, if one is wanted."""
    from styx.cli.exit_codes import usage_error
    from styx.cli.front_options import only_here
    from styx.postgres.serving import PostgresOptions
    from styx.query.service import Limits
    from styx.transport.address import parse_address

    if given.address is None:
        if (given.users, given.certificate, given.key) != (None, None, None):
            raise usage_error("--postgres-users, --postgres-cert and --postgres-key need --postgres HOST:PORT")
        return None
    if given.users is None:
        raise usage_error("--postgres needs --postgres-users FILE; styx keys postgres NAME makes a line of it")
    host, _ = parse_address(given.address)
    if given.certificate is None and not only_here(host):
        _log.warning("--postgres %s is reached from other machines without TLS: results can be read", given.address)
    most = Limits(limits.query_memory, limits.query_seconds, limits.query_rows)
    return PostgresOptions(given.address, given.users, given.certificate, given.key, most)


def _cluster(follow: FollowOptions, name: str) -> Callable[[], Cluster] | None:
    """Makes the cluster whose epochs are followed; None without one. Raises `ConfigurationError`."""
    from styx.cli.cluster_setup import security_of
    from styx.replica.cluster import Cluster
    from styx.transport.address import parse_address

    if follow.coordinator is None:
        return None
    parse_address(follow.coordinator)
    return partial(Cluster, name, security_of(follow.cluster), follow.coordinator)


def _process(
    open_place: Callable[[], Place],
    schema_of: Callable[[AppDescription], Schema],
    limits: ReplicaLimits,
    cluster_of: Callable[[], Cluster] | None,
) -> ReplicaProcess:
    """To be called on an event loop."""
    from styx.http.room import allow_descriptors, descriptors_max
    from styx.query.service import Limits
    from styx.replica.arrow_rows import ArrowRows
    from styx.replica.epoch_source import EpochSource
    from styx.replica.follower import Follower
    from styx.replica.process import ReplicaProcess
    from styx.replica.service import Places
    from styx.replica.source import SnapshotSource

    allow_descriptors(2**20)
    rows = ArrowRows(limits.rows_memory * MIB, max(1, descriptors_max() // FILES_SHARE))
    places = Places(limits.running or cores(), limits.waiting)
    most = Limits(limits.query_memory, limits.query_seconds, limits.query_rows)
    bytes_max = limits.memory * MIB
    snapshots = Follower(open_place, schema_of, bytes_max)
    source = SnapshotSource(snapshots) if cluster_of is None else EpochSource(snapshots, cluster_of(), bytes_max)
    return ReplicaProcess(source, rows, places, most)


def cores() -> int:
    """How many of the machine's cores the process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _open(follow: FollowOptions, secret: bytes | None) -> Callable[[], Place]:
    from styx.cli.store_options import StorePlace
    from styx.query.source import place_of_cluster, place_of_directory

    if follow.data_dir is not None:
        directory = follow.data_dir
        place_of_directory(directory)  # raises now for one that is none
        return lambda: place_of_directory(directory)
    assert follow.store is not None
    store = StorePlace(follow.store, follow.store_options)
    store.settings(os.environ)
    return lambda: place_of_cluster(store.open_to_read(), secret)


def _schema_of(follow: FollowOptions) -> Callable[[AppDescription], Schema]:
    from styx.cli.app_target import load_app
    from styx.errors import ConfigurationError
    from styx.query.schema import of_app, of_description

    if follow.app is None:
        return of_description
    schema = of_app(load_app(follow.app))

    def schema_of(description: AppDescription) -> Schema:
        if schema.app != description.name:
            raise ConfigurationError(f"--app is app {schema.app!r}, and the data is of {description.name!r}")
        return schema

    return schema_of
