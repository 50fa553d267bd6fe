"""A simulation's log and store as a place that is audited, and the audit of what a seed has left."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

from proof import cron_ticks
from proof.simulation import SimulationPlan
from proof.simulation.event_log import entries
from proof.simulation.ingests import unheard
from proof.simulation.run import Simulation
from proof.simulation.versions import version_for
from proof.simulation.world import World
from styx.audit.capture import capture
from styx.audit.case import CopiedObjects
from styx.audit.judge import judge
from styx.audit.origin import first_difference
from styx.audit.place import EventTaken, snapshots
from styx.audit.records import Budget
from styx.audit.verdict import CannotJudge, Verdict
from styx.coordinator.barrier import PatchRounds
from styx.log.base import LogReader, Stream
from styx.messages import EventRecord, decode_reply
from styx.model.app import App
from styx.model.limits import Limits
from styx.protocol.manifest import Manifest
from styx.sequencer.sequencer import slot_of
from styx.store.base import StoreReader

BYTES_MAX = 2**30


class SimulatedPlace:
    """As `Place`, at the end of a simulation that has kept its log."""

    reply_partitions = 0

    def __init__(self, world: World, app: App) -> None:
        self.app = app.name
        self.n_slots = world.plan.slots
        self.store: StoreReader = world.store.objects
        self.log: LogReader = world.log.records
        self._world = world
        self._app = app

    def close(self) -> None:
        pass

    def limits(self, version: int) -> Limits:
        return self._world.limits

    def check(self, app: App, version: int) -> None:
        pass

    def replies(self, before: Manifest | None) -> Iterator[tuple[int, int, bytes]]:
        parts = [] if before is None else [slot.part.replies for slot in before.slots]
        for partition in range(self.n_slots):
            first = min((part[partition] for part in parts if partition in part), default=0)
            for record in self.log.read(Stream.REPLIES, partition, first):
                sequence = decode_reply(record.payload).sequence
                yield slot_of(sequence, self.n_slots), sequence, record.payload

    def copy_events(self, before: Manifest | None, after: Manifest, take: EventTaken) -> tuple[list[str], list[str]]:
        since = -1 if before is None else before.epoch
        for slot in range(self.n_slots):
            for event in entries(self.log, slot):
                if isinstance(event, EventRecord) and since < event.epoch <= after.epoch:
                    take(event.event, slot, event.id, self._app.events[event.event].to_json(event.payload))
        return sorted(self._app.events), []


def audit_of(plan: SimulationPlan, workers: int) -> list[Verdict]:
    """Runs the plan, and audits what lies between its last two snapshots, and before the last one, on one worker and on
    so many: the traces must agree, too. What cannot be judged, because several versions of the app ran, is left out.
    """
    verdicts = []
    with cron_ticks.declared(plan.crons), unheard(), ExitStack() as stack:
        simulation = Simulation(plan, version_for(plan, 0), f"world {plan.seed} 0", keep_log=True)
        simulation.run(check=False)
        there = snapshots(SimulatedPlace(simulation.world, version_for(plan, 0)))
        if not there:
            return []
        newest, older = there[0], there[1:2]
        app = simulation.world.versions.apps()[newest.app_version] if plan.cluster else simulation.world.app
        place = SimulatedPlace(simulation.world, app)
        for before in [*older, None]:
            work = Path(stack.enter_context(tempfile.TemporaryDirectory()))
            (work / "case").mkdir()
            objects = CopiedObjects(work / "objects")
            try:
                capture(place, before, newest, work / "case", objects, Budget(BYTES_MAX))
            except CannotJudge:
                continue
            _, verdict = [
                judge(
                    work / "case",
                    objects,
                    app,
                    number,
                    trace=work / f"trace of {place}",
                    rounds=PatchRounds(*plan.patch_rounds),
                )
                for place, number in enumerate((1, min(workers, plan.slots)))
            ]
            origin = first_difference(work / "trace of 0", work / "trace of 1", "")
            assert origin is None, f"seed {plan.seed}: two replays on 1 and {verdict.workers} workers differ: {origin}"
            verdicts.append(verdict)
    return verdicts
