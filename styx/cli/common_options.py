"""Options that several commands have in common: of the processes of a cluster, of commands to its coordinator, and of
requests to a gateway.

Light declarations for the parser. Secrets are not among them, because a list of processes shows their options:
`styx.cli.cluster_setup` reads secrets from the environment.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

from cyclopts import Parameter

from styx.cli.store_options import StoreOptions, secrets_help
from styx.model.limits import FUNCTION_SECONDS_DEFAULT
from styx.store.stores import USAGE

if TYPE_CHECKING:
    from styx.model.limits import Limits

SLOTS_MAX: Final = 4_096
"""Each slot is a partition of the requests topic, and a part of every snapshot."""
REPLICATION_MAX: Final = 9
CLUSTER_DEFAULT: Final = "styx"
COORDINATOR_DEFAULT: Final = "127.0.0.1:7070"
ANSWER_SECONDS_DEFAULT: Final = 120.0
"""For a coordinator that reads the cluster's state, its log or its store first."""
_CLUSTER_SECRET: Final = """\
In the environment only:
  STYX_SECRET, or STYX_SECRET_FILE    the cluster's secret, the same everywhere
"""
_LOG_AND_TLS: Final = """\
  STYX_KAFKA_USERNAME, STYX_KAFKA_PASSWORD    of the log, if it asks for them
  STYX_TLS_CERTIFICATE, STYX_TLS_KEY, STYX_TLS_AUTHORITY    PEM files, for TLS
"""
SECRETS_HELP: Final = _CLUSTER_SECRET + secrets_help("the store") + "\n" + _LOG_AND_TLS
GATEWAY_SECRETS_HELP: Final = _CLUSTER_SECRET + _LOG_AND_TLS
"""A gateway has no store."""

# Of the processes of a cluster ------------------------------------------------------------------------------

LogUrl = Annotated[str, Parameter(name="--log", help="The log: kafka://HOST:PORT[,HOST:PORT].", env_var="STYX_LOG")]
CoordinatorAddress = Annotated[str, Parameter(help="The coordinator's HOST:PORT.", env_var="STYX_COORDINATOR")]
ClusterName = Annotated[str, Parameter(help="The cluster's name, the same everywhere.", env_var="STYX_CLUSTER")]
HttpHost = Annotated[str, Parameter(help="Address of /healthz, /readyz and /metrics.", env_var="STYX_HTTP_HOST")]
HttpPort = Annotated[
    int | None, Parameter(help="Their port; 0 takes a free one, none turns them off.", env_var="STYX_HTTP_PORT")
]

DRAIN_SECONDS_MAX: Final = 3_600.0
DrainSeconds = Annotated[
    float,
    Parameter(
        help="After SIGTERM, seconds to go on serving while /readyz is 503 and each answer closes its connection.",
        env_var="STYX_DRAIN",
    ),
]

FunctionSeconds = Annotated[
    float,
    Parameter(help="How long a function may run; then it is interrupted.", env_var="STYX_FUNCTION_SECONDS_MAX"),
]


def check_drain(seconds: float) -> None:
    """Raises a usage error for a drain that is out of its range."""
    from styx.cli.exit_codes import usage_error

    if not 0 <= seconds <= DRAIN_SECONDS_MAX:
        raise usage_error(f"--drain is a number of seconds from 0 to {DRAIN_SECONDS_MAX:g}, got {seconds:g}")


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class DataOptions:
    """The places of log and store."""

    log: LogUrl
    store: Annotated[str, Parameter(help=f"The store: {USAGE}.", env_var="STYX_STORE")]
    options: StoreOptions = field(default_factory=dict)


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class ClusterNumbers:
    """The numbers by which a coordinator runs its cluster, the same for `styx coordinator` and `styx up`."""

    slots: Annotated[
        int, Parameter(help="Parts that the entities are divided into; cannot change.", env_var="STYX_SLOTS")
    ] = 16
    snapshot_interval: Annotated[
        float, Parameter(help="Seconds between snapshots while there is work.", env_var="STYX_SNAPSHOT_INTERVAL")
    ] = 10.0
    silence: Annotated[
        float, Parameter(help="Seconds of silence after which a worker counts as dead.", env_var="STYX_SILENCE")
    ] = 1.0
    replication: Annotated[
        int, Parameter(help="Copies that Kafka keeps of each topic.", env_var="STYX_REPLICATION")
    ] = 1
    reply_partitions: Annotated[
        int, Parameter(help="Partitions of the replies; cannot change.", env_var="STYX_REPLY_PARTITIONS")
    ] = 16
    function_seconds_max: FunctionSeconds = FUNCTION_SECONDS_DEFAULT
    keep_log: Annotated[
        bool, Parameter(help="Keep all requests and epoch records, for audits.", env_var="STYX_KEEP_LOG")
    ] = False

    def check(self, workers: int, grace: float = 0.0) -> Limits:
        """The limits of the deployment. Raises `CommandFailed` for a number out of its range."""
        from styx.cli.exit_codes import usage_error
        from styx.cluster.options import cluster_limits

        for option, count, most in (
            ("--slots", self.slots, SLOTS_MAX),
            ("--workers", workers, self.slots),
            ("--replication", self.replication, REPLICATION_MAX),
            ("--reply-partitions", self.reply_partitions, SLOTS_MAX),
        ):
            if not 1 <= count <= most:
                raise usage_error(f"{option} is a number from 1 to {most}, got {count}")
        for option, seconds, least in (
            ("--snapshot-interval", self.snapshot_interval, 0.0),
            ("--silence", self.silence, 0.0),
            ("--grace", grace, -1.0),
        ):
            if not least < seconds < inf:
                raise usage_error(f"{option} is a number of seconds above 0, got {seconds:g}")
        try:
            return cluster_limits(self.function_seconds_max)
        except ValueError as error:
            raise usage_error(f"--function-seconds-max: {error}") from None

    def words(self) -> list[str]:
        """The options as arguments of `styx coordinator`."""
        return [
            *("--slots", str(self.slots), "--snapshot-interval", str(self.snapshot_interval)),
            *("--silence", str(self.silence), "--replication", str(self.replication)),
            *("--reply-partitions", str(self.reply_partitions)),
            *("--function-seconds-max", str(self.function_seconds_max)),
            *(["--keep-log"] if self.keep_log else []),
        ]


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
TableName = Annotated[str | None, Parameter(help="The table whose rows of the entity are printed, such as items.")]
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
