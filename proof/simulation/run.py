"""One simulation from start to verdict: run the plan, wait for every reply, check the history, recover once more,
check again.

Raises `SimulationFailure` naming the seed for anything that is not as the guarantees say, an assertion in a core
included.

`replay_elsewhere` takes a finished simulation's requests and epoch records, and recovers them from nothing on a
deployment of another size. The replies are not taken along: what they say of the last epoch, a record that begins the
next one says.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from proof import cron_ticks, spinning
from proof.bank import money_made
from proof.emit_steps import check_kept, noticed
from proof.life_steps import fleeting
from proof.link_steps import check_links
from proof.random_listings import gave_entries
from proof.simulation import event_log
from proof.simulation.clients import Clients
from proof.simulation.coordinator_process import CoordinatorProcess
from proof.simulation.faults import Faults
from proof.simulation.ingests import LATE_S, Ingests, unheard
from proof.simulation.landed import check_landed
from proof.simulation.plan import SimulationPlan
from proof.simulation.versions import version_for
from proof.simulation.worker_process import CLOCK_AHEAD_US_MAX, WorkerProcess
from proof.simulation.world import World
from styx.coordinator.generation import Phase
from styx.errors import FunctionTooLong, ReadOnlyViolation, StyxError
from styx.log.base import Stream
from styx.messages import ReplyRecord, decode_reply
from styx.model.app import App
from styx.model.app_index import AppIndex
from styx.model.delivery import delivery_name
from styx.model.table_names import kept_event
from styx.schema.view_rebuilding import rebuilt_views
from styx.sequencer.epoch_record import EPOCHS_PARTITION, EpochRecord, SlotBatch, SnapshotNote, Verdicts, decode, encode
from styx.state.table import NEWEST
from styx.testing.history import READ_ONLY_PHASE, HistoryReport, SerializabilityViolation, check_history, state_hash
from styx.testing.reads import ReadSeen
from styx.testing.serial import ExternalResult, external_result
from styx.worker.events import Step

PATIENCE_S = 60.0
"""Virtual time after the last request and fault in which every request must be answered."""
SETTLE_S = 0.5
LOOK_S = 0.05


class SimulationFailure(AssertionError):
    """A guarantee did not hold; the message has the plan and the reason."""


class SimulationReport(msgspec.Struct, frozen=True, kw_only=True):
    """Figures of a simulation. `faults` by kind, `struck` of them amid a rollout by its stage; `deployments` by what
    became of them; `state_hash` of the final state; `replies` as in the replies stream.
    `cuts` counts functions that the watchdog ended, `cut_replies` the transactions that ended so, `unlocked` those
    that it took out of a lock phase; `passed_over` the requests that waited for an epoch with room, `small_epochs` a
    worker's epochs that contention had kept small. `local` counts replies of phase 3, `left` the local transactions
    that left their slot, `read_only` the transactions that committed in phase 0, `violations` those that ended because
    a read-only function would have written. `patch_rounds` counts the rounds with patches of all lock phases,
    `given_up` the transactions carried because there were too many. `entries` counts the entries of references to other
    entities at the end; each was found to be right. `events` counts those in the logs of events, likewise, `ticks`
    those of crons that were seen. `outside` counts the reads outside the log that were checked, `listings` those that
    gave a part of a listing, `strict` the strict ones among all. `landed` counts foreign records by their fates.
    """

    plan: SimulationPlan
    history: HistoryReport
    faults: dict[str, int]
    struck: dict[str, int]
    deployments: dict[str, int]
    generations: int
    epochs: int
    snapshots: int
    messages: int
    cuts: int
    cut_replies: int
    unlocked: int
    passed_over: int
    small_epochs: int
    local: int
    left: int
    read_only: int
    violations: int
    patch_rounds: int
    given_up: int
    entries: int
    events: int
    ticks: int
    landed: dict[str, int]
    outside: int
    strict: int
    listings: int
    state_hash: str
    replies: list[ReplyRecord]
    requests: list[tuple[int, int, bytes]]
    records: list[bytes]


def simulate(
    plan: SimulationPlan,
    *,
    app: App | None = None,
    arrival: int = 0,
    keep_log: bool = False,
    check: bool = True,
) -> SimulationReport:
    """Runs `plan`, on the chaos app that it needs; `arrival` changes the order in which messages arrive, no more."""
    try:
        with cron_ticks.declared(plan.crons), unheard():
            runs = app or version_for(plan, 0)
            return Simulation(plan, runs, f"world {plan.seed} {arrival}", keep_log).run(check)
    except (AssertionError, StyxError, ArithmeticError, LookupError, TypeError, AttributeError, ValueError) as error:
        raise SimulationFailure(f"seed {plan.seed}: {type(error).__name__}: {error}\n{plan}") from error


class Simulation:
    """A simulation under way; `simulate` is the usual way to run one."""

    def __init__(self, plan: SimulationPlan, app: App, seed: str, keep_log: bool) -> None:
        self.plan = plan
        self.world = World(plan, app, seed, keep_log)
        self.clients = Clients(self.world, plan)
        self.ingests = Ingests(self.world, plan, self.clients)
        self.faults = Faults(self.world, self.ingests, plan.faults)

    def run(self, check: bool) -> SimulationReport:
        try:
            return self._run(check)
        finally:
            self.ingests.close()

    def _run(self, check: bool) -> SimulationReport:
        world = self.world
        self.start()
        end_s = max(self.clients.end_s, self.faults.end_s, self.ingests.end_s)
        self.run_until(lambda: world.time.now_s >= end_s, end_s + 1)
        self._heal()
        self.run_until(self.ingests.done, world.time.now_s + PATIENCE_S, self.ingests.progress)
        self.ingests.close()
        arrived_s = world.time.now_s + LATE_S  # whatever the ingests have sent
        self.run_until(lambda: world.time.now_s > arrived_s, arrived_s + PATIENCE_S)
        self.run_until(self._all_answered, world.time.now_s + PATIENCE_S, lambda: world.log.replies)
        self.run_until(lambda: world.time.now_s >= end_s + SETTLE_S and self.quiet(), world.time.now_s + PATIENCE_S)
        return self.verdict(check)

    def verdict(self, check: bool = True) -> SimulationReport:
        """Recovers everything once more and checks the history; `check`: also the state, and that all is answered."""
        if self.plan.managed:
            self.world.operators.check()
        before, remembered = self.state(), self._remembered()
        self._restart_everything()
        self.run_until(self.quiet, self.world.time.now_s + PATIENCE_S)
        self.run_until(self.all_marked, self.world.time.now_s + PATIENCE_S)
        after = self.state()
        same = cron_ticks.of_others if self.plan.crons else dict
        assert same(before) == same(after), "the state after a recovery differs from the state before it"
        left = [name for name, _ in after if name.startswith(fleeting.name) or kept_event(name) == noticed.name]
        assert not left, f"{left} should have come to the end of its life"
        assert remembered == self._remembered(), "a recovery would forget other idempotency keys"
        return self._report(after, check)

    def run_until(self, reached: Callable[[], bool], limit_s: float, progress: Callable[[], int] | None = None) -> None:
        """Lets things happen until `reached()`, looked at every `LOOK_S`; raises when `limit_s` has passed. Whenever
        `progress()` has grown, patience begins anew: epochs of one transaction each take long, and are not stuck.
        """
        world, look_s, seen = self.world, 0.0, 0
        while True:
            if world.time.now_s >= look_s:
                look_s = world.time.now_s + LOOK_S
                self._look()
                if reached():
                    return
                if progress is not None and progress() > seen:
                    seen, limit_s = progress(), world.time.now_s + PATIENCE_S
            if world.time.now_s > limit_s:
                raise AssertionError(f"no progress by {limit_s:.1f} s: {self._stuck()}")
            if not world.time.next():
                raise AssertionError("nothing is left to happen")

    def _look(self) -> None:
        coordinator = self.world.coordinator
        if coordinator is not None:
            assert coordinator.refused is None, f"the coordinator refused: {coordinator.refused}"
        self.ingests.look()

    def start(self) -> None:
        """Starts every process that does not live."""
        self.world.start_coordinator()
        for worker in range(self.plan.workers):
            self.world.start_worker(worker)
        self.ingests.start()

    def _heal(self) -> None:
        self.world.idle = self.world.duplicating = False
        self.ingests.rest(0.0)
        self.start()

    def _restart_everything(self) -> None:
        world = self.world
        world.crash_coordinator()
        for worker in list(world.workers):
            world.crash_worker(worker)
        self._heal()

    def all_marked(self) -> bool:
        """Behind the last event there is a mark in the partition of each slot, also of those without events."""
        if not all(host.journal.all_told and not host.unmarked for host in self.members()):
            return False
        records = self.world.log.records  # the order to mark may be on its way to a worker that has emitted nothing
        return event_log.evenly_marked([event_log.entries(records, slot) for slot in range(self.plan.slots)])

    def _all_answered(self) -> bool:
        return self.world.log.replies >= self.clients.expected

    def quiet(self) -> bool:
        """Every worker that takes part is of the newest generation and has nothing to do."""
        world = self.world
        if self.plan.cluster:
            return self._cluster_quiet()
        generations = {host.core.generation for host in world.workers.values()}
        return (
            len(world.workers) == self.plan.workers
            and world.coordinator is not None
            and generations == {world.coordinator.core.generation}
            and len({host.core.epoch for host in world.workers.values()}) == 1
            and all(
                host.core.reached is Step.IDLE
                and not host.core.replaying
                and not host.core.backlog
                and not host.core.unfinished
                and cron_ticks.nothing_waits(host.core)
                and host.journal.all_told
                for host in world.workers.values()
            )
        )

    def _cluster_quiet(self) -> bool:
        coordinator = self.world.coordinator
        if coordinator is None or coordinator.core.phase is not Phase.RUNNING:
            return False
        if coordinator.core.changing or not coordinator.core.membership.settled:
            return False
        if self.plan.managed and not self._managed_quiet(coordinator):
            return False
        members = self.members()
        return len(members) == len(coordinator.core.membership.members) and all(
            host.core.generation == coordinator.core.generation
            and host.core.epoch == coordinator.core.epoch
            and host.core.reached is Step.IDLE
            and not host.core.replaying
            and not host.core.backlog
            and not host.core.unfinished
            and cron_ticks.nothing_waits(host.core)
            and host.journal.all_told
            for host in members
        )

    def _managed_quiet(self, coordinator: CoordinatorProcess) -> bool:
        """No rollout is under way, all commands are answered, who can take part may, who stands by has been told."""
        plane, members = coordinator.plane, coordinator.core.membership.members
        if plane.rollout.under_way is not None or self.world.operators.waiting:
            return False
        staying = [each for each in plane.roster.workers.values() if not each.leaving]
        hosts = {each.number: self.world.numbered(each.number) for each in staying}
        return all(
            host is not None and (number in members or host.spare is True or plane.rollout.version not in host.code)
            for number, host in hosts.items()
        )

    def members(self) -> list[WorkerProcess]:
        """The workers that take part in the present generation."""
        hosts = list(self.world.workers.values())
        if not self.plan.cluster:
            return hosts
        coordinator = self.world.coordinator
        members = frozenset() if coordinator is None else coordinator.core.membership.members
        return [host for host in hosts if host.id in members]

    def state(self) -> dict[tuple[str, Any], bytes]:
        """All entities' committed state, over all workers, whose indexes and views are those of it."""
        state: dict[tuple[str, Any], bytes] = {}
        for host in self.members():
            for slot in host.core.slots.values():
                for table in slot.state.tables.values():
                    table.check_indexes(self.plan.slots)
                wrong = rebuilt_views(host.core.app, slot.state.at(NEWEST), self.plan.slots)
                assert not wrong, f"views are not those of their rows: {wrong}"
                state.update(slot.state.entities(NEWEST))
        self._check_entries(state)
        return state

    def _check_entries(self, state: Mapping[tuple[str, Any], bytes]) -> None:
        """Holds what rows imply elsewhere against all rows."""
        tables: dict[str, dict[Any, bytes]] = {}
        for (name, key), data in state.items():
            tables.setdefault(name, {})[key] = data
        app = next(iter(self.members())).core.app
        for table, consequence in app.entries():
            assert consequence.entries is not None
            there = tables.get(consequence.entries.full_name, {})
            made = consequence.derived(tables.get(table.full_name, {}).items())
            assert there == made, f"entries of {table.full_name} are not those of its rows: {there} {made}"
            if isinstance(consequence, AppIndex) and consequence.declared.unique:
                values = {key[: consequence.entries.entity_parts] for key in there}
                assert len(values) == len(there), f"a value stands twice in {consequence.entries}"

    def _remembered(self) -> dict[int, list[Any]]:
        """Idempotency keys by slot, the next to be forgotten first."""
        return {slot: memory.keys for host in self.members() for slot, memory in host.core.memories.items()}

    def _stuck(self) -> str:
        lines = [f"{self.world.log.replies} of {self.clients.expected} replies"]
        coordinator = self.world.coordinator
        if coordinator is not None:
            lines.append(f"coordinator {coordinator.core.phase.name} generation {coordinator.core.generation}")
            lines.append(f"rollout {coordinator.plane.rollout.under_way}; unanswered {self.world.operators.waiting}")
        for host in self.world.workers.values():
            core = host.core
            lines.append(
                f"{host.name}: {core.reached.name} generation {core.generation} epoch {core.epoch} "
                f"backlog {core.backlog} unfinished {core.unfinished} open roots {core.executor.open_roots} "
                f"given for later {core.given_for_later}"
            )
        return "; ".join(lines)

    def _externals(self) -> dict[bytes, ExternalResult]:
        """What external calls gave; nothing may have been run again after a success was logged."""
        if not self.plan.faults:
            again = [key.hex() for key, runs in self.world.external_runs.items() if runs > 1]
            assert not again, f"external calls ran more than once although nothing had failed: {again}"
        return {key: external_result(data) for key, data in self.world.outcomes.items()}

    def _check_real_time(self, replies: list[ReplyRecord]) -> None:
        """A request that was sent when a reply was there is in a later epoch than that reply's transaction."""
        for reply in replies:
            if delivery_name(reply.request_id) is not None:
                continue
            before = self.clients.answered[reply.request_id]
            if reply.sequence == reply.tid and reply.epoch <= before:
                raise SerializabilityViolation(f"{reply} was sent behind a reply of epoch {before}")

    def _reads_seen(self) -> list[ReadSeen]:
        """All reads outside the log, unless the app was changed: what they have seen then was maybe converted for the
        change, and a change before the first epoch is not told from the first version.
        """
        world = self.world
        assert world.coordinator is not None
        newest, there = max((read.epoch for read in world.reads_seen), default=-1), world.coordinator.core.epoch
        assert newest <= there, f"epoch {newest} was read, and the last one is {there}"
        return world.reads_seen if not self.plan.cluster or not any(world.versions.began.values()) else []

    def _check_times(self) -> None:
        """No delivery is made before its time, by the clock of the process whose clock is the most ahead."""
        for slot in range(self.plan.slots):
            for record in self.world.log.records.read(Stream.REPLIES, slot, 0):
                name = delivery_name(decode_reply(record.payload).request_id)
                if name is not None and name.now_us > record.timestamp_us + CLOCK_AHEAD_US_MAX:
                    raise SerializabilityViolation(f"{name} was made at {record.timestamp_us}, before its time")

    def _report(self, state: dict[tuple[str, Any], bytes], check: bool) -> SimulationReport:
        world, plan = self.world, self.plan
        records = world.log.records
        replies = [
            decode_reply(record.payload)
            for slot in range(plan.slots)
            for record in records.read(Stream.REPLIES, slot, 0)
        ]
        history = check_history(
            world.app,
            self.clients.sent,
            replies,
            state if check else None,
            limits=world.limits,
            n_slots=plan.slots,
            externals=self._externals(),
            versions=world.versions.apps() if plan.cluster else None,
            complete=check,
            around=spinning.as_replied,
            reads=self._reads_seen(),
        )
        apps = world.versions.apps() if plan.cluster else {0: world.app}
        last, ran = apps[max(apps)], list(world.versions.began.values())
        landed = check_landed(self.ingests.topics.values(), state, history.emitted, last, ran) if check else {}
        events = 0
        if check and world.changes_seen is not None and not (plan.cluster and any(world.versions.began.values())):
            world.changes_seen.check(state, [host.core for host in self.members()], plan.slots)
        if check and plan.emits:
            partitions = [event_log.entries(records, slot) for slot in range(plan.slots)]
            events = event_log.check_events(partitions, history.emitted)
            check_kept(world.app, state, history.emitted)
        self._check_real_time(replies)
        self._check_times()
        if plan.profile.transfers and money_made(state):
            raise SerializabilityViolation("transfers have made or lost money")
        entries = check_links(apps[max(apps)], state)
        ticks = 0
        if plan.crons and check and apps[max(apps)].operators[cron_ticks.OPERATOR].crons:
            newest = world.versions.began[max(apps)] if plan.cluster else 0
            ticks = cron_ticks.check_ticks(apps[max(apps)], newest, state, world.log.timestamp_us)
        requests = []
        if world.keep_log:
            requests = [
                (slot, record.timestamp_us, record.payload)
                for slot in range(plan.slots)
                for record in records.read(Stream.REQUESTS, slot, 0)
            ]
        epochs = [r.payload for r in records.read(Stream.EPOCHS, 0, records.bounds(Stream.EPOCHS, 0)[0])]
        assert world.coordinator is not None
        return SimulationReport(
            plan=plan,
            history=history,
            faults=self.faults.done,
            struck=self.faults.struck,
            deployments=world.versions.counts(),
            generations=world.coordinator.core.generation,
            epochs=world.coordinator.core.epoch + 1,
            snapshots=world.snapshots,
            messages=world.network.messages,
            cuts=world.cuts,
            cut_replies=sum(r.error is not None and r.error[1] == FunctionTooLong.__name__ for r in replies),
            unlocked=sum(len(v.unlocked) for v in map(decode, epochs) if isinstance(v, Verdicts)),
            passed_over=world.passed_over,
            small_epochs=world.small_epochs,
            local=sum(reply.phase == 3 for reply in replies),
            left=world.left,
            read_only=sum(r.phase == READ_ONLY_PHASE and r.error is None for r in replies),
            violations=sum(r.error is not None and r.error[1] == ReadOnlyViolation.__name__ for r in replies),
            patch_rounds=world.patch_rounds.rounds,
            given_up=world.patch_rounds.given_up,
            entries=entries,
            events=events,
            ticks=ticks,
            landed=landed,
            outside=len(self._reads_seen()),
            strict=world.strict_reads,
            listings=sum(gave_entries(read) for read in self._reads_seen()),
            state_hash=state_hash(state),
            replies=replies,
            requests=requests,
            records=epochs,
        )


EPOCH_S = 1.0
"""What an epoch may take, of one transaction maybe, on many workers and a slow network."""

_AS_WAS: Final[Mapping[str, Any]] = {}


def replay_elsewhere(
    report: SimulationReport, *, workers: int, arrival: int, app: App | None = None, pace: Mapping[str, Any] = _AS_WAS
) -> tuple[list[ReplyRecord], str]:
    """(replies sorted by sequence TID, state hash) of the replay; `report` is of a simulation with `keep_log`. `pace`
    are other fields of the plan for the replay. Its events are checked to be those of the simulation.
    """
    assert report.requests, "the simulation must have been run with keep_log=True"
    plan = replace(report.plan, workers=workers, requests=0, ingests=0.0, faults=(), **pace)
    simulation = Simulation(plan, app or version_for(report.plan, 0), f"elsewhere {arrival}", keep_log=True)
    world = simulation.world
    records = world.log.records
    for slot, timestamp_us, payload in report.requests:
        records.append(Stream.REQUESTS, slot, timestamp_us, payload)
    for payload in report.records:
        records.append(Stream.EPOCHS, EPOCHS_PARTITION, 0, payload)
    records.append(Stream.EPOCHS, EPOCHS_PARTITION, 0, encode(_next_begun(report.records)))
    records.flush()
    simulation.start()
    asked = sum(delivery_name(reply.request_id) is None for reply in report.replies)
    simulation.run_until(lambda: world.log.replies >= asked, PATIENCE_S + report.epochs * EPOCH_S)
    simulation.run_until(simulation.quiet, world.time.now_s + PATIENCE_S)
    if plan.emits:
        simulation.run_until(simulation.all_marked, world.time.now_s + PATIENCE_S)
        event_log.check_events([event_log.entries(records, slot) for slot in range(plan.slots)], report.history.emitted)
    replies = [decode_reply(r.payload) for slot in range(plan.slots) for r in records.read(Stream.REPLIES, slot, 0)]
    return sorted(replies, key=lambda reply: reply.sequence), state_hash(simulation.state())


def _next_begun(payloads: list[bytes]) -> EpochRecord:
    """The epoch behind the last one, as begun by all workers with nothing to do: it says that time has nothing left to
    decide before it.
    """
    entries = list(map(decode, payloads))
    records = [record for record in entries if isinstance(record, EpochRecord)]
    last = max(records, key=lambda record: record.epoch)
    batches = [batch for record in records if record.epoch == last.epoch for batch in record.batches]
    counter = last.counter + max(batch.count + batch.due for batch in batches)
    # Of the last generation, which begins behind the last epoch: a record of an older one would be void.
    generation = max(entry.generation for entry in entries if not isinstance(entry, SnapshotNote))
    nothing = [SlotBatch(batch.slot, batch.next, batch.next, 0) for batch in batches]
    return EpochRecord(generation, last.epoch + 1, counter, nothing)
