"""`styx coordinator`: the one process of a cluster that decides who owns which slots, and when a snapshot counts."""

from __future__ import annotations

from typing import Annotated, Final, Literal

from cyclopts import Parameter

from styx.cli.common_options import CLUSTER_DEFAULT, SECRETS_HELP, ClusterName, DataOptions, HttpHost, HttpPort

EXAMPLES: Final = f"""\
Examples:
  styx coordinator --app-name bank --workers 2 \\
      --log kafka://127.0.0.1:9092 --store file:///var/lib/bank
  styx coordinator --app bank:app --log kafka://k1:9092,k2:9092 \\
      --store s3://styx/bank --s3-endpoint http://s3.internal:9000

{SECRETS_HELP}
Exit codes:
  0    stopped by Ctrl-C or SIGTERM, after a last snapshot
  1    it cannot go on: another coordinator took over, or data is damaged
  2    an option is wrong, or does not fit what log and store hold
"""
SLOTS_MAX: Final = 4_096
"""Each slot is a partition of the requests topic, and a part of every snapshot."""


def coordinator(
    *,
    data: DataOptions,
    app_name: Annotated[
        str | None, Parameter(help="The app's name; a worker or styx deploy brings its code.", env_var="STYX_APP_NAME")
    ] = None,
    app: Annotated[
        str | None,
        Parameter(help="MODULE:APP: the code too, deployed at each start of this process.", env_var="STYX_APP"),
    ] = None,
    host: Annotated[str, Parameter(help="Address to listen on; 0.0.0.0 for all.", env_var="STYX_HOST")] = "127.0.0.1",
    port: Annotated[int, Parameter(help="Port to listen on.", env_var="STYX_PORT")] = 7070,
    slots: Annotated[
        int, Parameter(help="Parts that the entities are divided into; cannot change.", env_var="STYX_SLOTS")
    ] = 16,
    workers: Annotated[
        int | Literal["auto"],
        Parameter(help="Workers that share the slots; others stand by. auto: all share them.", env_var="STYX_WORKERS"),
    ] = 1,
    snapshot_interval: Annotated[
        float, Parameter(help="Seconds between snapshots while there is work.", env_var="STYX_SNAPSHOT_INTERVAL")
    ] = 10.0,
    silence: Annotated[
        float, Parameter(help="Seconds of silence after which a worker counts as dead.", env_var="STYX_SILENCE")
    ] = 1.0,
    grace: Annotated[
        float, Parameter(help="Seconds to wait for all workers at the start.", env_var="STYX_GRACE")
    ] = 10.0,
    replication: Annotated[
        int, Parameter(help="Copies that Kafka keeps of each topic.", env_var="STYX_REPLICATION")
    ] = 1,
    reply_partitions: Annotated[
        int, Parameter(help="Partitions of the replies; cannot change.", env_var="STYX_REPLY_PARTITIONS")
    ] = 16,
    function_seconds_max: Annotated[
        float,
        Parameter(help="How long a function may run; then it is interrupted.", env_var="STYX_FUNCTION_SECONDS_MAX"),
    ] = 10.0,
    keep_log: Annotated[
        bool, Parameter(help="Keep all requests and epoch records, for audits.", env_var="STYX_KEEP_LOG")
    ] = False,
    name: Annotated[str, Parameter(help="Its name in logs.", env_var="STYX_NAME")] = "coordinator",
    cluster: ClusterName = CLUSTER_DEFAULT,
    http_host: HttpHost = "127.0.0.1",
    http_port: HttpPort = 8081,
) -> None:
    """Run the coordinator of a cluster.

    Workers, gateways and commands connect to it. One is active for each log and
    app: a second one takes over, and the first one ends. It keeps nothing of its
    own; after a crash, start it again, anywhere.
    """
    from styx.cli.exit_codes import usage_error

    if (app is None) == (app_name is None):
        raise usage_error("give either --app-name NAME or --app MODULE:APP")
    check_numbers(
        slots, 1 if workers == "auto" else workers, snapshot_interval, silence, grace, replication, reply_partitions
    )

    from styx.cli.cluster_process import coordinate, run_process
    from styx.cli.cluster_setup import facts_address, process_options, security_of
    from styx.cluster.options import CoordinatorOptions, cluster_limits

    try:
        limits = cluster_limits(function_seconds_max)
    except ValueError as error:
        raise usage_error(f"--function-seconds-max: {error}") from None
    security = security_of(cluster)
    options = process_options(name, security, "", data, host, port)
    loaded = None
    if app is not None:
        from styx.cli.app_target import load_app

        loaded = load_app(app)
    wanted = CoordinatorOptions(
        app=app_name or (loaded.name if loaded is not None else ""),
        n_slots=slots,
        workers=None if workers == "auto" else workers,
        limits=limits,
        reply_partitions=reply_partitions,
        replication=replication,
        snapshot_interval_s=snapshot_interval,
        silence_max_s=silence,
        grace_s=grace,
        keep_log=keep_log,
    )
    run_process(name, coordinate(options, wanted, loaded, facts_address(http_host, http_port, security.secret)))


def check_numbers(
    slots: int,
    workers: int,
    snapshot_interval: float,
    silence: float,
    grace: float,
    replication: int,
    reply_partitions: int,
) -> None:
    """Raises `CommandFailed` for a number out of its range."""
    from styx.cli.exit_codes import usage_error

    for option, count, most in (
        ("--slots", slots, SLOTS_MAX),
        ("--workers", workers, slots),
        ("--replication", replication, 9),
        ("--reply-partitions", reply_partitions, SLOTS_MAX),
    ):
        if not 1 <= count <= most:
            raise usage_error(f"{option} is a number from 1 to {most}, got {count}")
    for option, seconds, least in (
        ("--snapshot-interval", snapshot_interval, 0.0),
        ("--silence", silence, 0.0),
        ("--grace", grace, -1.0),
    ):
        if not least < seconds < float("inf"):
            raise usage_error(f"{option} is a number of seconds above 0, got {seconds:g}")
