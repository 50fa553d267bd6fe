"""Options that processes of a cluster have in common: where they listen, and the addresses of coordinator, log and
store.

Light declarations for the parser. Secrets are not among them, because everybody who lists processes would see them:
`styx.cli.cluster_setup` reads secrets from the environment.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, Final

from cyclopts import Parameter

from styx.cli.store_options import StoreOptions, secrets_help
from styx.store.stores import USAGE

COORDINATOR_DEFAULT: Final = "127.0.0.1:7070"
SECRETS_HELP: Final = f"""\
In the environment only:
  STYX_SECRET, or STYX_SECRET_FILE    the cluster's secret, the same everywhere
{secrets_help("the store")}
  STYX_KAFKA_USERNAME, STYX_KAFKA_PASSWORD    of the log, if it asks for them
  STYX_TLS_CERTIFICATE, STYX_TLS_KEY, STYX_TLS_AUTHORITY    PEM files, for TLS
"""

LogUrl = Annotated[str, Parameter(name="--log", help="The log: kafka://HOST:PORT[,HOST:PORT].", env_var="STYX_LOG")]
CoordinatorAddress = Annotated[str, Parameter(help="The coordinator's HOST:PORT.", env_var="STYX_COORDINATOR")]
ClusterName = Annotated[str, Parameter(help="The cluster's name, the same everywhere.", env_var="STYX_CLUSTER")]
HttpHost = Annotated[str, Parameter(help="Address of /healthz, /readyz and /metrics.", env_var="STYX_HTTP_HOST")]
HttpPort = Annotated[
    int | None, Parameter(help="Their port; 0 takes a free one, none turns them off.", env_var="STYX_HTTP_PORT")
]
CLUSTER_DEFAULT: Final = "styx"


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class DataOptions:
    """Where log and store are."""

    log: LogUrl
    store: Annotated[str, Parameter(help=f"The store: {USAGE}.", env_var="STYX_STORE")]
    options: StoreOptions = field(default_factory=dict)
