"""`styx deploy`: an app's code to a running cluster, or back to the version before."""

from __future__ import annotations

from typing import Annotated, Final

from cyclopts import Parameter

from styx.cli.common_options import (
    ANSWER_SECONDS_DEFAULT,
    AnswerTimeout,
    ClusterOrLocal,
    Coordinator,
    check_timeout,
)

EXAMPLES: Final = """\
Examples:
  styx deploy bank:app
  styx deploy bank:app --coordinator 10.0.0.7:7070
  styx deploy bank:app --check
  styx deploy --rollback

In the environment only:
  STYX_SECRET, or STYX_SECRET_FILE    the cluster's secret; not needed for a
  cluster that styx up runs from this directory

Exit codes:
  0    it runs, or with --check could
  1    it was refused, or the coordinator did not answer
  2    there is no such App, or an option is wrong
"""


def deploy(
    target: Annotated[
        str | None,
        Parameter(name="MODULE:APP", help="The App: bank:app, shop.bank:app or src/bank.py:app."),
    ] = None,
    /,
    *,
    rollback: Annotated[bool, Parameter(negative=(), help="Run the version before the present one again.")] = False,
    check: Annotated[bool, Parameter(negative=(), help="Only say whether it could be deployed.")] = False,
    coordinator: Coordinator = None,
    cluster: ClusterOrLocal = None,
    timeout: AnswerTimeout = ANSWER_SECONDS_DEFAULT,
) -> None:
    """Run another version of the app from now on.

    Every worker must be able to run it, and no entity may be lost: an operator
    that has state keeps its name, its key type and its number of partitions, and
    every stored entity must fit its state_type, or be converted by its migrate=.
    The workers check all entities while they serve requests, and check changed
    ones again. If any entity does not fit, the version is refused and nothing
    changes; the message has the number of such entities and the first ten. A
    million entities take some seconds; raise --timeout for many more.
    Requests are served meanwhile. Each runs on one version, also in a replay.
    """
    from styx.cli.exit_codes import CommandFailed, usage_error

    if rollback == (target is not None):
        raise usage_error("give either MODULE:APP or --rollback")
    check_timeout(timeout)

    from styx.cli.app_target import load_app
    from styx.cli.operator_link import operator_link
    from styx.cluster.wire import Deploy, Rollback
    from styx.deployment.package import pack

    link = operator_link(coordinator, cluster)
    if target is None:
        message: Deploy | Rollback = Rollback(check)
    else:
        message = Deploy(pack(load_app(target), link.security.secret), check)
    answer = link.ask(message, timeout)
    if not answer.done:
        running = f"version {answer.version} goes on" if answer.version else "nothing runs yet"
        raise CommandFailed(f"{'it cannot be' if check else 'not'} deployed: {answer.text}\n{running}")
    print(answer.text)
