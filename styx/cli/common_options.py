"""Options that several commands have in common: of the processes of a cluster, of commands to its coordinator, and of
requests to a gateway.

Light declarations for the parser. Secrets are not among them, because a list of processes shows their options:
`styx.cli.cluster_setup` reads secrets from the environment.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import inf
from pathlib import Path
from typing import Annotated, Final

from cyclopts import Parameter

from styx.cli.store_options import StoreOptions, secrets_help
from styx.store.stores import USAGE

CLUSTER_DEFAULT: Final = "styx"
COORDINATOR_DEFAULT: Final = "127.0.0.1:7070"
ANSWER_SECONDS_DEFAULT: Final = 120.0
"""For a coordinator that reads the cluster's state, its log or its store first."""
SECRETS_HELP: Final = f"""\
In the environment only:
  STYX_SECRET, or STYX_SECRET_FILE    the cluster's secret, the same everywhere
{secrets_help("the store")}
  STYX_KAFKA_USERNAME, STYX_KAFKA_PASSWORD    of the log, if it asks for them
  STYX_TLS_CERTIFICATE, STYX_TLS_KEY, STYX_TLS_AUTHORITY    PEM files, for TLS
"""

# Of the processes of a cluster ------------------------------------------------------------------------------

LogUrl = Annotated[str, Parameter(name="--log", help="The log: kafka://HOST:PORT[,HOST:PORT].", env_var="STYX_LOG")]
CoordinatorAddress = Annotated[str, Parameter(help="The coordinator's HOST:PORT.", env_var="STYX_COORDINATOR")]
ClusterName = Annotated[str, Parameter(help="The cluster's name, the same everywhere.", env_var="STYX_CLUSTER")]
HttpHost = Annotated[str, Parameter(help="Address of /healthz, /readyz and /metrics.", env_var="STYX_HTTP_HOST")]
HttpPort = Annotated[
    int | None, Parameter(help="Their port; 0 takes a free one, none turns them off.", env_var="STYX_HTTP_PORT")
]


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class DataOptions:
    """The places of log and store."""

    log: LogUrl
    store: Annotated[str, Parameter(help=f"The store: {USAGE}.", env_var="STYX_STORE")]
    options: StoreOptions = field(default_factory=dict)


# Of commands to a running cluster's coordinator ------------------------------------------------------------

Coordinator = Annotated[
    str | None,
    Parameter(help="The coordinator's HOST:PORT, by default the one of styx up here.", env_var="STYX_COORDINATOR"),
]
ClusterOrLocal = Annotated[str | None, Parameter(help="The cluster's name.", env_var="STYX_CLUSTER")]
AnswerTimeout = Annotated[float, Parameter(help="Seconds to wait for the answer.", env_var="STYX_TIMEOUT")]


# Of requests to a gateway ----------------------------------------------------------------------------------

OperatorName = Annotated[str, Parameter(help="The operator's name, such as account.")]
EntityKey = Annotated[str, Parameter(help="The entity's key: alice, 42, or a JSON array for a composite key: '[1,2]'.")]
GatewayUrl = Annotated[
    str | None, Parameter(help="The gateway; by default that of styx up here, or port 8080.", env_var="STYX_URL")
]
ReplyTimeout = Annotated[float, Parameter(help="Seconds to wait for the reply.", env_var="STYX_TIMEOUT")]
ApiKey = Annotated[
    str | None,
    Parameter(help="API key or token. Better in the environment: others here see options.", env_var="STYX_API_KEY"),
]
Authority = Annotated[
    Path | None, Parameter(help="PEM file with the authority of an https gateway.", env_var="STYX_CA")
]


def check_timeout(timeout: float, seconds_max: float = inf) -> None:
    """Raises the usage error of a `--timeout` that is not above 0 and up to `seconds_max`."""
    from styx.cli.exit_codes import usage_error

    if not 0 < timeout <= seconds_max or timeout == inf:
        most = "" if seconds_max == inf else f" and up to {seconds_max:g}"
        raise usage_error(f"--timeout is a number of seconds above 0{most}, got {timeout:g}")
