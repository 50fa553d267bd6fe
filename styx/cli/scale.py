"""`styx scale`: how many workers share the slots of a running cluster."""

from __future__ import annotations

from typing import Annotated, Final

from cyclopts import Parameter

from styx.cli.common_options import ClusterOrLocal, Coordinator

ANSWER_SECONDS_MAX: Final = 30.0

EXAMPLES: Final = """\
Examples:
  styx scale 3
  styx scale 8 --coordinator 10.0.0.7:7070

In the environment only:
  STYX_SECRET, or STYX_SECRET_FILE    the cluster's secret; not needed for a
  cluster that styx up runs from this directory

Exit codes:
  0    the coordinator has taken it
  1    it was refused, or the coordinator did not answer
  2    an option is wrong
"""


def scale(
    workers: Annotated[int, Parameter(name="N", help="Workers, at most as many as there are slots.")],
    /,
    *,
    coordinator: Coordinator = None,
    cluster: ClusterOrLocal = None,
) -> None:
    """Share the slots among another number of workers.

    Under styx up, processes are started and stopped to match. Elsewhere start
    them yourself, before or after: more than are wanted stand by.
    """
    from styx.cli.exit_codes import CommandFailed
    from styx.cli.operator_link import operator_link
    from styx.cluster.wire import Scale

    answer = operator_link(coordinator, cluster).ask(Scale(workers), ANSWER_SECONDS_MAX)
    if not answer.done:
        raise CommandFailed(f"not scaled: {answer.text}")
    print(answer.text)
