"""The plan of one measurement: how many requests a second, for how long, from how many clients. Data and its checks."""

from __future__ import annotations

from typing import Final, Literal

import msgspec

from styx.errors import ConfigurationError

Arrivals = Literal["even", "poisson"]

RATE_MAX: Final = 1_000_000.0
"""Requests a second; beyond this a typing error is more likely than a machine."""
CLIENTS_MAX: Final = 256
IN_FLIGHT_MAX_DEFAULT: Final = 20_000
"""The requests under way at once in one client process. Further requests are shed, and counted."""
TIMEOUT_SECONDS_DEFAULT: Final = 30.0


class LoadPlan(msgspec.Struct, frozen=True, kw_only=True):
    """One run; the same plan for all client processes, each of which sends its share of `rate`.

    `rate` is requests a second over all `clients`. With a `concurrency` the loop is closed: so many requests are under
    way at once, over all clients, and `rate` says nothing. Requests due in the `warm_up_s` seconds before the window
    are sent and not counted. Requests due in the `duration_s` seconds of the window are counted. Then the client waits
    for replies, `drain_s` seconds at most. `interval_s` is the resolution of the time line.

    `give_up_s`: end early once it is certain that more than one in a hundred requests take longer than this; None:
    never.
    """

    rate: float
    duration_s: float = 10.0
    warm_up_s: float = 3.0
    drain_s: float = 30.0
    clients: int = 1
    arrivals: Arrivals = "even"
    tick_s: float = 0.005
    interval_s: float = 1.0
    in_flight_max: int = IN_FLIGHT_MAX_DEFAULT
    seed: int = 1
    give_up_s: float | None = None
    concurrency: int | None = None

    def check(self) -> None:
        """Raises `ConfigurationError` for a number that makes no sense."""
        for name, value, least, most in (
            ("--rate", self.rate, 0.01, RATE_MAX),
            ("--duration", self.duration_s, 0.1, 1e6),
            ("--warm-up", self.warm_up_s, 0.0, 1e6),
            ("--drain", self.drain_s, 0.1, 3600.0),
            ("--clients", self.clients, 1, CLIENTS_MAX),
            ("--tick", self.tick_s, 0.001, 1.0),
            ("--interval", self.interval_s, 0.01, 60.0),
            ("--in-flight", self.in_flight_max, 1, 10_000_000),
        ):
            if not least <= value <= most:
                raise ConfigurationError(f"{name} is a number from {least:g} to {most:g}, got {value:g}")
        if self.concurrency is not None and not self.clients <= self.concurrency <= self.clients * self.in_flight_max:
            raise ConfigurationError(
                f"--concurrency is a number from that of the clients ({self.clients}) to {self.in_flight_max} for each "
                f"of them (--in-flight), got {self.concurrency}"
            )
