"""`styx drain`: moves a worker's slots to the other workers, so that the worker can be stopped and nothing is
replayed."""

from __future__ import annotations

from typing import Annotated, Final

from cyclopts import Parameter

from styx.cli.common_options import ClusterOrLocal, Coordinator, check_timeout

EXAMPLES: Final = """\
Examples:
  styx drain bank-worker-0
  STYX_NAME=bank-worker-0 styx drain --coordinator 10.0.0.7:7070 --timeout 30

In the environment only:
  STYX_SECRET, or STYX_SECRET_FILE    the cluster's secret; not needed for a
  cluster that styx up runs from this directory

Exit codes:
  0    the worker has no slots, or no worker of this name is registered
  1    it still has some when the time is over, or the coordinator is out of
       reach; a worker that was asked to leave goes on leaving
  2    an option is wrong
"""


def drain(
    name: Annotated[
        str | None, Parameter(name="NAME", help="The worker's --name, as styx status shows it.", env_var="STYX_NAME")
    ] = None,
    /,
    *,
    coordinator: Coordinator = None,
    cluster: ClusterOrLocal = None,
    timeout: Annotated[float, Parameter(help="Seconds to wait until it has no slots.", env_var="STYX_TIMEOUT")] = 60.0,
) -> None:
    """Give a worker's slots to the other workers, before it is stopped.

    A snapshot is taken, and nothing is replayed. The worker gets no slots again
    until it is started anew. If it is the last one, its state is stored, and
    requests wait in the log for the next worker. SIGTERM to a worker does the
    same. This command does it from elsewhere and waits for the end, for example in
    a hook before the stop.
    """
    from styx.cli.exit_codes import CommandFailed, usage_error

    if not name:
        raise usage_error("give the worker's NAME, or set STYX_NAME")
    check_timeout(timeout)

    from styx.cli.operator_link import operator_link
    from styx.cluster.wire import Drain

    answer = operator_link(coordinator, cluster).ask(Drain(name), timeout, again=True)
    if not answer.done:
        raise CommandFailed(f"not drained: {answer.text}")
    print(answer.text)
