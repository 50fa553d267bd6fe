"""The same log replayed elsewhere: other workers, another arrival order; replies and state must not notice.

Takes a finished simulation's requests and epoch records, and recovers them from nothing on a deployment of
another size. The replies are not taken along: what they say of the last epoch, a record that begins the next one says.
"""

from __future__ import annotations

from msgspec.structs import replace

from proof import chaos_app
from proof.simulation.run import PATIENCE_S, Simulation, SimulationReport
from styx.log.base import Stream
from styx.messages import ReplyRecord, decode_reply
from styx.model.app import App
from styx.sequencer.epoch_record import EPOCHS_PARTITION, EpochRecord, decode, encode
from styx.testing.history import state_hash

EPOCH_S = 1.0
"""What an epoch may take, of one transaction maybe, on many workers and a slow network."""


def replay_elsewhere(
    report: SimulationReport, *, workers: int, arrival: int, app: App = chaos_app.app
) -> tuple[list[ReplyRecord], str]:
    """(replies sorted by sequence TID, state hash) of the replay; `report` is of a simulation with `keep_log`."""
    assert report.requests, "the simulation must have been run with keep_log=True"
    plan = replace(report.plan, workers=workers, requests=0, faults=())
    simulation = Simulation(plan, app, f"elsewhere {arrival}", keep_log=True)
    world = simulation.world
    records = world.log.records
    for slot, timestamp_us, payload in report.requests:
        records.append(Stream.REQUESTS, slot, timestamp_us, payload)
    for payload in report.records:
        records.append(Stream.EPOCHS, EPOCHS_PARTITION, 0, payload)
    records.append(Stream.EPOCHS, EPOCHS_PARTITION, 0, encode(_next_begun(report.records)))
    records.flush()
    simulation.start()
    simulation.run_until(lambda: world.log.replies >= len(report.replies), PATIENCE_S + report.epochs * EPOCH_S)
    simulation.run_until(simulation.quiet, world.time.now_s + PATIENCE_S)
    replies = [decode_reply(r.payload) for slot in range(plan.slots) for r in records.read(Stream.REPLIES, slot, 0)]
    return sorted(replies, key=lambda reply: reply.sequence), state_hash(simulation.state())


def _next_begun(payloads: list[bytes]) -> EpochRecord:
    """The epoch behind the last one, as begun by one worker: it says that time has nothing left to decide before it."""
    records = [decode(payload) for payload in payloads]
    last = max((record for record in records if isinstance(record, EpochRecord)), key=lambda record: record.epoch)
    return replace(last, generation=max(r.generation for r in records), epoch=last.epoch + 1, batches=[])
