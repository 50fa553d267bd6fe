"""`styx gateway`: one process of a cluster that takes requests over HTTP. Any number of them stand side by side."""

from __future__ import annotations

from typing import Annotated, Final

from cyclopts import Parameter

from styx.cli.common_options import (
    CLUSTER_DEFAULT,
    COORDINATOR_DEFAULT,
    GATEWAY_SECRETS_HELP,
    ClusterName,
    CoordinatorAddress,
    DrainSeconds,
    HttpHost,
    HttpPort,
    LogUrl,
    check_drain,
)
from styx.cli.front_options import FrontOptions

EXAMPLES: Final = f"""\
Examples:
  styx gateway --log kafka://127.0.0.1:9092
  styx gateway --coordinator 10.0.0.7:7070 --log kafka://k1:9092 --host 0.0.0.0 --drain 5

{GATEWAY_SECRETS_HELP}
Exit codes:
  0    stopped by Ctrl-C or SIGTERM, requests in flight finished
  1    it cannot go on
  2    an option is wrong
"""


def gateway(
    *,
    log: LogUrl,
    coordinator: CoordinatorAddress = COORDINATOR_DEFAULT,
    host: Annotated[str, Parameter(help="Address to listen on; 0.0.0.0 for all.", env_var="STYX_HOST")] = "127.0.0.1",
    port: Annotated[int, Parameter(help="Port to listen on; 0 takes a free one.", env_var="STYX_PORT")] = 8080,
    name: Annotated[
        str | None, Parameter(help="Its name in logs; host and process id by default.", env_var="STYX_NAME")
    ] = None,
    cluster: ClusterName = CLUSTER_DEFAULT,
    front: FrontOptions | None = None,
    http_host: HttpHost = "127.0.0.1",
    http_port: HttpPort = None,
    drain: DrainSeconds = 0.0,
) -> None:
    """Run an HTTP gateway of a cluster.

    It learns the app from the coordinator and follows deployments; requests and
    replies go through the log. Without the coordinator it goes on with what it
    knows. /healthz, /readyz and /metrics are on its own port as well.

    With --drain as long as a balancer needs to notice, its end costs no request.
    A second signal ends the drain; requests in flight are finished all the same,
    for up to 20 s more.
    """

    check_drain(drain)

    from styx.cli.cluster_process import run_process, serve_gateway
    from styx.cli.cluster_setup import default_name, facts_address, security_of
    from styx.cli.front_options import front_of
    from styx.cluster.gateway.process import GatewayProcess
    from styx.kafka.address import parse_kafka_url
    from styx.transport.address import parse_address

    name = name or default_name()
    parse_address(coordinator)
    before = front_of(front or FrontOptions(), host)
    security = security_of(cluster)
    told = facts_address(http_host, http_port, security.secret)
    process = GatewayProcess(name, security, coordinator, parse_kafka_url(log))
    run_process(name, serve_gateway(process, host, port, told, before, drain))
