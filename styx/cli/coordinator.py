"""`styx coordinator`: the one process of a cluster that decides who owns which slots, and when a snapshot counts."""

from __future__ import annotations

from typing import Annotated, Final, Literal

from cyclopts import Parameter

from styx.cli.common_options import (
    CLUSTER_DEFAULT,
    SECRETS_HELP,
    ClusterName,
    ClusterNumbers,
    DataOptions,
    HttpHost,
    HttpPort,
)

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
    workers: Annotated[
        int | Literal["auto"],
        Parameter(help="Workers that share the slots; others stand by. auto: all share them.", env_var="STYX_WORKERS"),
    ] = 1,
    numbers: ClusterNumbers | None = None,
    grace: Annotated[
        float, Parameter(help="Seconds to wait for all workers at the start.", env_var="STYX_GRACE")
    ] = 10.0,
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
    numbers = numbers or ClusterNumbers()
    limits = numbers.check(1 if workers == "auto" else workers, grace)

    from styx.cli.cluster_process import coordinate, run_process
    from styx.cli.cluster_setup import facts_address, process_options, security_of
    from styx.cluster.options import CoordinatorOptions

    security = security_of(cluster)
    options = process_options(name, security, "", data, host, port)
    loaded = None
    if app is not None:
        from styx.cli.app_target import load_app

        loaded = load_app(app)
    wanted = CoordinatorOptions(
        app=app_name or (loaded.name if loaded is not None else ""),
        n_slots=numbers.slots,
        workers=None if workers == "auto" else workers,
        limits=limits,
        reply_partitions=numbers.reply_partitions,
        replication=numbers.replication,
        snapshot_interval_s=numbers.snapshot_interval,
        silence_max_s=numbers.silence,
        grace_s=grace,
        keep_log=numbers.keep_log,
    )
    run_process(name, coordinate(options, wanted, loaded, facts_address(http_host, http_port, security.secret)))
