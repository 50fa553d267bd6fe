"""Setting requests aside through the coordinator, so that a cluster that a request holds up goes on.

`styx.cluster.asides` decides about the request, and the control plane decides what follows for the workers.
"""

from __future__ import annotations

from collections.abc import Callable

from styx.cluster.asides import put_aside
from styx.cluster.wire import SetAside
from styx.coordinator.control_events import RequestSetAside
from styx.errors import ConfigurationError, EngineFailed
from styx.host.background import Background
from styx.kafka.address import KafkaAddress
from styx.set_aside.places import listing, read
from styx.store.base import Store


def set_aside(
    message: SetAside,
    by: int,
    log: KafkaAddress,
    store: Store,
    background: Background,
    give: Callable[[RequestSetAside], None],
    answer: Callable[[bool, str], None],
) -> None:
    """Does it, or says what it would do; without a place, says what has been set aside."""

    def run() -> tuple[bool, str]:
        if not message.place:
            return True, listing(read(store))
        try:
            return True, put_aside(message.place, log, store, message.dry_run)
        except (ConfigurationError, EngineFailed) as error:
            return False, str(error)

    def ended(found: tuple[bool, str]) -> None:
        done, text = found
        if done and message.place and not message.dry_run:
            give(RequestSetAside(by, message.place, text))
        else:
            answer(done, text)

    background.submit(
        "setting a request aside", run, ended, lambda error: answer(False, f"log or store out of reach: {error}")
    )
