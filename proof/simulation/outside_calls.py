"""A simulated worker's outside calls: the key is logged, then the function runs, then its outcome is logged.

A call whose outcome stands in the log is not run again. Decides nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import msgspec

from styx.errors import describe
from styx.log.base import Stream
from styx.protocol.frames import ExternalOutcome
from styx.values.codec import encode_any
from styx.worker.events import ExternalEnded, RunExternal

if TYPE_CHECKING:
    from proof.simulation.worker_process import WorkerProcess

RUN_S = 0.02
"""How long an outside function runs at most."""

_encode = msgspec.msgpack.Encoder().encode


def run_external(host: WorkerProcess, wanted: RunExternal) -> None:
    """The host learns of the outcome with `ExternalEnded`, if it lives until then."""
    world = host.world

    def logged(outcome: bytes) -> None:
        known = world.outcomes.setdefault(wanted.key, outcome)
        host.give(ExternalEnded(wanted.generation, wanted.tid, wanted.root_slot, wanted.key, known))

    def append(payload: bytes, arrived: Callable[[], None]) -> None:
        world.log.append(
            host.name,
            wanted.generation,
            Stream.EXTERNALS,
            wanted.root_slot,
            [wanted.key + payload],
            arrived,
            host.identity,
            host.refused(wanted.generation),
        )

    def run() -> None:
        if host.alive:
            world.outside_runs[wanted.key] = world.outside_runs.get(wanted.key, 0) + 1
            outcome = _encode(_outcome_of(wanted))
            append(outcome, lambda: logged(outcome))

    known = world.outcomes.get(wanted.key)
    if known is not None:
        world.time.after(0.0, logged, known)
    else:
        append(b"", lambda: world.time.after(world.rng.random() * RUN_S, run))


def _outcome_of(wanted: RunExternal) -> ExternalOutcome:
    try:
        return ExternalOutcome(encode_any(wanted.function(*wanted.args), "the outcome"))
    except Exception as error:  # noqa: BLE001 - an outside function can raise anything
        return ExternalOutcome(None, describe(error))
