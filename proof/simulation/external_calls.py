"""A simulated worker's external calls: the records of the externals stream, and the functions themselves."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import msgspec

from styx.errors import describe
from styx.log.base import Stream
from styx.protocol.frames import ExternalOutcome
from styx.sequencer.epoch_record import encode_external
from styx.values.codec import encode_any
from styx.worker.events import AppendExternal, RunExternal

if TYPE_CHECKING:
    from proof.simulation.worker_process import WorkerProcess

RUN_S = 0.02
"""How long an external function runs at most."""

_encode = msgspec.msgpack.Encoder().encode


def append_external(host: WorkerProcess, effect: AppendExternal, durable: Callable[[bytes | None], None]) -> None:
    """As `WorkerJournal.external`."""
    world, record = host.world, effect.record
    halted = host.core.pressure.halted and record.outcome is None
    assert not halted, "an external call begins on a worker whose app may change"

    def arrived() -> None:
        outcome = record.outcome
        world.intents.add(record.key)
        durable(None if outcome is None else world.outcomes.setdefault(record.key, outcome))

    world.log.append(
        host.name,
        effect.generation,
        Stream.EXTERNALS,
        effect.slot,
        [encode_external(record)],
        arrived,
        host.identity,
        host.refused(effect.generation),
    )


def run_external(host: WorkerProcess, wanted: RunExternal, ended: Callable[[bytes], None]) -> None:
    """As `External.run`."""
    world = host.world

    def run() -> None:
        if host.alive:
            assert wanted.key in world.intents, "an external function is run although the log does not say so"
            world.external_runs[wanted.key] = world.external_runs.get(wanted.key, 0) + 1
            ended(_encode(_outcome_of(wanted)))

    world.time.after(world.rng.random() * RUN_S, run)


def _outcome_of(wanted: RunExternal) -> ExternalOutcome:
    try:
        return ExternalOutcome(encode_any(wanted.function(*wanted.args), "the outcome"))
    except Exception as error:  # noqa: BLE001 - an external function can raise anything
        return ExternalOutcome(None, describe(error))
