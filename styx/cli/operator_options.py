"""Common options of commands to a running cluster's coordinator: its address, and how long to wait for its answer.

Light declarations for the parser.
"""

from __future__ import annotations

from typing import Annotated, Final

from cyclopts import Parameter

ANSWER_SECONDS_DEFAULT: Final = 120.0
"""For what reads the cluster's state, its log or its store first."""

Coordinator = Annotated[
    str | None,
    Parameter(help="The coordinator's HOST:PORT, by default the one of styx up here.", env_var="STYX_COORDINATOR"),
]
ClusterOrLocal = Annotated[str | None, Parameter(help="The cluster's name.", env_var="STYX_CLUSTER")]
AnswerTimeout = Annotated[float, Parameter(help="Seconds to wait for the answer.", env_var="STYX_TIMEOUT")]


def check_timeout_option(timeout: float) -> None:
    """Raises the usage error of a `--timeout` that is out of range."""
    from styx.cli.exit_codes import usage_error

    if not 0 < timeout < float("inf"):
        raise usage_error(f"--timeout is a number of seconds above 0, got {timeout:g}")
