"""`styx worker`: one process of a cluster that owns slots and runs their transactions."""

from __future__ import annotations

from typing import Annotated, Final

from cyclopts import Parameter

from styx.cli.common_options import (
    CLUSTER_DEFAULT,
    COORDINATOR_DEFAULT,
    SECRETS_HELP,
    ClusterName,
    CoordinatorAddress,
    DataOptions,
    HttpHost,
    HttpPort,
)

EXAMPLES: Final = f"""\
Examples:
  styx worker --log kafka://127.0.0.1:9092 --store file:///var/lib/bank
  styx worker --coordinator 10.0.0.7:7070 --host 0.0.0.0 --advertise 10.0.0.8 \\
      --log kafka://k1:9092,k2:9092 --store s3://styx/bank

{SECRETS_HELP}
Exit codes:
  0    stopped by Ctrl-C or SIGTERM; the other workers have its slots, or
       take over after --drain seconds. A second signal ends it at once
  1    it cannot go on, or the store is out of reach at its start
  2    an option is wrong
"""


def worker(
    *,
    data: DataOptions,
    app: Annotated[
        str | None,
        Parameter(help="MODULE:APP: the first version, if none was deployed yet.", env_var="STYX_APP"),
    ] = None,
    coordinator: CoordinatorAddress = COORDINATOR_DEFAULT,
    host: Annotated[str, Parameter(help="Address to listen on for other workers.", env_var="STYX_HOST")] = "127.0.0.1",
    port: Annotated[int, Parameter(help="Port for other workers; 0 takes a free one.", env_var="STYX_PORT")] = 0,
    advertise: Annotated[
        str, Parameter(help="Host under which other workers reach it, if not --host.", env_var="STYX_ADVERTISE")
    ] = "",
    name: Annotated[
        str | None, Parameter(help="Its name in logs; host and process id by default.", env_var="STYX_NAME")
    ] = None,
    drain: Annotated[
        float, Parameter(help="Seconds to wait at its end until others have its slots.", env_var="STYX_DRAIN")
    ] = 60.0,
    cluster: ClusterName = CLUSTER_DEFAULT,
    http_host: HttpHost = "127.0.0.1",
    http_port: HttpPort = None,
) -> None:
    """Run a worker of a cluster.

    It registers with the coordinator, loads the slots that it is given and runs
    their transactions. It gets the app's code from the coordinator. It keeps
    nothing of its own: kill it, and the others take its slots over. Told to
    stop, it first lets them have its slots, so that nothing is replayed.
    """
    from styx.cli.exit_codes import usage_error

    if host in ("0.0.0.0", "::") and not advertise:
        raise usage_error(
            f"--host {host} cannot be connected to: give --advertise the host by which other workers reach this one"
        )

    if not 0 <= drain < float("inf"):
        raise usage_error(f"--drain is a number of seconds, 0 or more, got {drain:g}")

    from styx.cli.app_target import load_app
    from styx.cli.cluster_process import run_process, work
    from styx.cli.cluster_setup import facts_address, process_options, security_of

    options = process_options(name, security_of(cluster), coordinator, data, host, port, advertise)
    loaded = None if app is None else load_app(app)
    told = facts_address(http_host, http_port, options.security.secret)
    run_process(options.name, work(options, loaded, told, drain))
