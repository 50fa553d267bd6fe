"""`styx ingest`: one process of a cluster that reads the topics of the app's ingests. A second one does no harm."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Annotated, Final

from cyclopts import Parameter

from styx.cli.common_options import (
    CLUSTER_DEFAULT,
    COORDINATOR_DEFAULT,
    GATEWAY_SECRETS_HELP,
    ClusterName,
    CoordinatorAddress,
    HttpHost,
    HttpPort,
    LogUrl,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from styx.kafka.address import KafkaAddress

USERNAME_VARIABLE: Final = "STYX_INGEST_KAFKA_USERNAME"
PASSWORD_VARIABLE: Final = "STYX_INGEST_KAFKA_PASSWORD"
EXAMPLES: Final = f"""\
Examples:
  styx ingest --log kafka://127.0.0.1:9092
  styx ingest --log kafka://k1:9092 --from kafka://other:9092
  styx ingest --log kafka://k1:9092 --from payments=kafka://bank:9092

{GATEWAY_SECRETS_HELP}\
  {USERNAME_VARIABLE}, {PASSWORD_VARIABLE}    of the brokers that --from names

Exit codes:
  0    stopped by Ctrl-C or SIGTERM
  1    it cannot go on
  2    an option is wrong
"""


def ingest(
    *,
    log: LogUrl,
    coordinator: CoordinatorAddress = COORDINATOR_DEFAULT,
    source: Annotated[
        tuple[str, ...],
        Parameter(
            name="--from",
            negative=(),
            help="Where the topics are, by default in the log's brokers: kafka://… for all, INGEST=kafka://… for one.",
            env_var="STYX_INGEST_FROM",
        ),
    ] = (),
    name: Annotated[
        str | None, Parameter(help="Its name in logs; host and process id by default.", env_var="STYX_NAME")
    ] = None,
    cluster: ClusterName = CLUSTER_DEFAULT,
    http_host: HttpHost = "127.0.0.1",
    http_port: HttpPort = None,
) -> None:
    """Read the topics of others that the app declares as ingests.

    It learns the app from the coordinator and follows deployments. How far a
    topic is read stands in the app's state, so this process can be killed and
    started anywhere, and several of them do no harm: each record is taken once.
    """
    from styx.cli.cluster_process import run_ingest, run_process
    from styx.cli.cluster_setup import default_name, facts_address, security_of
    from styx.cluster.ingest.process import IngestProcess
    from styx.kafka.address import parse_kafka_url
    from styx.transport.address import parse_address

    name = name or default_name()
    parse_address(coordinator)
    ours, theirs = parse_kafka_url(log), sources_of(source)
    security = security_of(cluster)
    told = facts_address(http_host, http_port, security.secret)
    process = IngestProcess(name, security, coordinator, ours, theirs)
    run_process(name, run_ingest(process, told))


def sources_of(given: tuple[str, ...], environment: Mapping[str, str] = os.environ) -> dict[str, KafkaAddress]:
    """The brokers by the name of an ingest, "" for those of all others. Raises `CommandFailed` or
    `ConfigurationError`.
    """
    from styx.cli.exit_codes import usage_error
    from styx.errors import ConfigurationError
    from styx.kafka.address import PASSWORD_VARIABLE as LOGS_PASSWORD
    from styx.kafka.address import SCHEME, parse_kafka_url
    from styx.kafka.address import USERNAME_VARIABLE as LOGS_USERNAME

    # The log's own login is never shown to the brokers of others.
    login = {
        logs: environment[own]
        for logs, own in ((LOGS_USERNAME, USERNAME_VARIABLE), (LOGS_PASSWORD, PASSWORD_VARIABLE))
        if own in environment
    }
    found: dict[str, KafkaAddress] = {}
    for text in given:
        ingest_name, url = ("", text) if text.startswith(f"{SCHEME}:") else text.partition("=")[::2]
        if not url or (text[0] == "="):
            raise usage_error(f"--from is kafka://HOST:PORT or INGEST=kafka://HOST:PORT, got {text!r}")
        if ingest_name in found:
            raise usage_error(f"--from says twice where {ingest_name or 'all topics'} are: leave one out")
        try:
            found[ingest_name] = parse_kafka_url(url, login)
        except ConfigurationError as error:
            told = str(error).replace(LOGS_USERNAME, USERNAME_VARIABLE).replace(LOGS_PASSWORD, PASSWORD_VARIABLE)
            raise ConfigurationError(told) from None
    return found
