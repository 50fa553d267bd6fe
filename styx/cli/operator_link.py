"""The address and secret of the coordinator that a command means: the given ones, else those of the local cluster.

`styx.cluster.reaching` sends the command.
"""

from __future__ import annotations

import asyncio
import os
from typing import Final, NamedTuple

from styx.cli.cluster_setup import SECRET_FILE_VARIABLE, SECRET_VARIABLE, security_of
from styx.cli.common_options import CLUSTER_DEFAULT, COORDINATOR_DEFAULT
from styx.cli.exit_codes import CommandFailed, usage_error
from styx.cli.run_directory import cluster_at, local_cluster
from styx.cluster.reaching import Order, Unanswered, ask
from styx.cluster.wire import Answer, Deploy, Rollback
from styx.transport import Refused, Security
from styx.transport.handshake import Refusal

RETRY_SECONDS: Final = 0.5
AWAY_SECONDS_MAX: Final = 20.0
"""A coordinator that is away for longer is given up. Another one needs less time to take its place. When the whole
cluster ends, none comes back.
"""


class OperatorLink(NamedTuple):
    """A coordinator's address, and the secret that proves this command's right to speak to it."""

    coordinator: str
    security: Security

    def ask(self, message: Order, seconds_max: float, *, again: bool = False) -> Answer:
        """The coordinator's answer; raises `CommandFailed` if there is none in time.

        `again`: a coordinator that is away, or begins anew, is asked again, unless it stays away.
        """
        return asyncio.run(self._asked(message, seconds_max, again))

    async def _asked(self, message: Order, seconds_max: float, again: bool) -> Answer:
        away, loop = "", asyncio.get_running_loop()
        there_at_s = loop.time()
        try:
            async with asyncio.timeout(seconds_max):
                while True:
                    try:
                        return await ask(self.coordinator, self.security, message)
                    except OSError as error:
                        if not again or (isinstance(error, Refused) and error.refusal is not Refusal.HUNG_UP):
                            raise
                        if isinstance(error, Unanswered):
                            there_at_s = loop.time()
                        elif loop.time() - there_at_s > AWAY_SECONDS_MAX:
                            raise
                        away = f" It was away: {error}."
                    await asyncio.sleep(RETRY_SECONDS)
        except TimeoutError:
            # With the connection, the coordinator gives up a mere check.
            on = "has given it up" if isinstance(message, Deploy | Rollback) and message.only_check else "goes on"
            raise CommandFailed(
                f"the coordinator at {self.coordinator} has not answered within {seconds_max:g} s and {on}.{away}\n"
                "See: styx status"
            ) from None
        except OSError as error:
            raise CommandFailed(f"{error}\nSee: styx status") from None


def operator_link(coordinator: str | None, cluster: str | None) -> OperatorLink:
    """The link that options and environment name. Raises `CommandFailed` and `ConfigurationError`."""
    local = local_cluster() if coordinator is None else cluster_at(coordinator)
    environment = dict(os.environ)
    if local is not None and not environment.get(SECRET_VARIABLE) and not environment.get(SECRET_FILE_VARIABLE):
        environment[SECRET_FILE_VARIABLE] = local.secret_file
    if local is None and not environment.get(SECRET_VARIABLE) and not environment.get(SECRET_FILE_VARIABLE):
        raise usage_error(
            "no styx up runs in this directory, and the cluster's secret is not set.\n"
            f"Run this where styx up was started, or set {SECRET_VARIABLE} and give --coordinator."
        )
    address = coordinator or (local.coordinator if local is not None else COORDINATOR_DEFAULT)
    name = cluster or (local.cluster if local is not None else CLUSTER_DEFAULT)
    return OperatorLink(address, security_of(name, environment))
