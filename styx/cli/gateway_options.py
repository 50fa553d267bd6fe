"""Common options of commands that send a request to a gateway: its URL, the credential, and the timeout.

Light declarations for the parser.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from styx.model.limits import TIMEOUT_SECONDS_MAX

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


def check_timeout_option(timeout: float) -> None:
    """Raises the usage error of a `--timeout` that is out of range."""
    from styx.cli.exit_codes import usage_error

    if not 0 < timeout <= TIMEOUT_SECONDS_MAX:
        raise usage_error(
            f"--timeout is a number of seconds above 0 and up to {TIMEOUT_SECONDS_MAX:g}, got {timeout:g}"
        )
