"""Faults: what breaks when, and that it heals again. One method a kind; `FAULT_KINDS` lists them."""

from __future__ import annotations

from collections.abc import Callable

from proof.simulation.foreign_topic import ForeignTopic
from proof.simulation.ingests import Ingests
from proof.simulation.plan import OTHER_STORE, SET_ASIDE, Fault
from proof.simulation.versions import content_of, opened
from proof.simulation.world import DRAIN_S, World
from styx.coordinator.control_events import (
    DrainAsked,
    PackageOffered,
    RollbackAsked,
    ScaleAsked,
    SetAsideAsked,
    WorkerBusy,
)
from styx.coordinator.events import DeployWanted, StopWanted, WorkersWanted
from styx.coordinator.rollout import Stage
from styx.log.base import Stream
from styx.store import MemoryStore

RESTART_S = 0.05
STRIKE_S = 3.0
"""How long a fault waits for the stage of a rollout in which it is to happen."""
LOOK_S = 0.002
IDLE_UNTIL_S = 10.0
"""So long before clients send again, time passes as usual: processes look at it often."""


class Faults:
    """Schedules a plan's faults; `done` counts those that happened, by kind, `struck` those amid a rollout by stage."""

    def __init__(self, world: World, ingests: Ingests, faults: tuple[Fault, ...]) -> None:
        self.done: dict[str, int] = {}
        self.struck: dict[str, int] = {}
        self.end_s = 0.0
        self._world = world
        self._ingests = ingests
        actions = {
            "worker crash": self._worker_crash,
            "second worker crash during recovery": self._second_crash,
            "coordinator crash": self._coordinator_crash,
            "coordinator and worker crash": self._both_crash,
            "crash of everything": self._everything_crash,
            "frozen worker": self._frozen,
            "slow store": self._slow_store,
            "failing store": self._failing_store,
            OTHER_STORE: self._other_store,
            "duplicate delivery": self._duplicates,
            "garbage in the log": self._garbage,
            "idle hour": self._idle,
            "zombie coordinator": self._zombie,
            "broken peer connection": self._broken_connection,
            "deployment": self._deployment,
            "scale": self._scale,
            "leave": self._leave,
            "all leave": self._all_leave,
            "coordinator stop": self._coordinator_stop,
            "deployment that a worker cannot run": self._unfit_deployment,
            "deployment whose operator is lost": self._abandoned_deployment,
            "check": self._check,
            "check that ends midway": self._abandoned_check,
            "rollback": self._rollback,
            "drain": self._drain,
            SET_ASIDE: self._set_aside,
            "worker lost amid a rollout": self._rollout_without_worker,
            "coordinator lost amid a rollout": self._rollout_without_coordinator,
            "store failing amid a rollout": self._rollout_without_store,
            "ingest killed": self._ingest_killed,
            "second ingest": self._second_ingest,
            "zombie ingest": self._zombie_ingest,
            "foreign brokers away": self._brokers_away,
            "foreign topic made anew": self._topic_made_anew,
            "foreign topic truncated": self._topic_truncated,
            "foreign topic grows": self._topic_grows,
        }
        for fault in faults:
            self.end_s = max(self.end_s, fault.at_s + fault.duration_s)
            world.time.after(fault.at_s, self._happen, actions[fault.kind], fault)

    def _happen(self, action: object, fault: Fault) -> None:
        assert callable(action)
        self.done[fault.kind] = self.done.get(fault.kind, 0) + 1
        action(fault.duration_s)

    def _worker_crash(self, duration_s: float) -> None:
        world = self._world
        worker = world.rng.randrange(world.plan.workers)
        world.crash_worker(worker)
        world.time.after(duration_s, world.start_worker, worker)

    def _second_crash(self, duration_s: float) -> None:
        world = self._world
        self._worker_crash(RESTART_S)
        world.time.after(RESTART_S * 2 * world.rng.random(), self._worker_crash, duration_s)

    def _coordinator_crash(self, duration_s: float) -> None:
        self._world.crash_coordinator()
        self._world.time.after(duration_s, self._world.start_coordinator)

    def _both_crash(self, duration_s: float) -> None:
        self._coordinator_crash(duration_s)
        self._worker_crash(duration_s * self._world.rng.random())

    def _everything_crash(self, duration_s: float) -> None:
        world = self._world
        for worker in list(world.workers):
            world.crash_worker(worker)
            world.time.after(duration_s * world.rng.random(), world.start_worker, worker)
        self._coordinator_crash(duration_s)

    def _frozen(self, duration_s: float) -> None:
        world = self._world
        host = world.workers.get(world.rng.randrange(world.plan.workers))
        if host is not None:
            host.freeze(duration_s)

    def _slow_store(self, duration_s: float) -> None:
        self._world.store.slow_until_s = self._world.time.now_s + duration_s

    def _failing_store(self, duration_s: float) -> None:
        self._world.store.failing_until_s = self._world.time.now_s + duration_s

    def _other_store(self, duration_s: float) -> None:
        """A worker takes another store for the deployment's, as in an upgrade that changes its address."""
        world = self._world
        host = world.workers.get(world.rng.randrange(world.plan.workers))
        if host is not None:
            host.stores_in(MemoryStore())
            world.time.after(duration_s, host.stores_in, world.store.objects)

    def _duplicates(self, duration_s: float) -> None:
        world = self._world
        world.duplicating = True
        world.time.after(duration_s, setattr, world, "duplicating", False)

    def _garbage(self, duration_s: float) -> None:
        world = self._world
        slot = world.rng.randrange(world.plan.slots)
        world.log.append_now(Stream.REQUESTS, slot, world.rng.randbytes(world.rng.randrange(40)))
        world.time.after(duration_s * world.rng.random(), world.feed, slot)

    def _zombie(self, duration_s: float) -> None:
        """A coordinator gets stuck, another one takes over, and then the first goes on, with its workers or without."""
        world, coordinator = self._world, self._world.coordinator
        if coordinator is None or not coordinator.alive or world.zombies:
            return
        coordinator.stall()

        def taken_over() -> None:
            if not coordinator.alive or world.coordinator is not coordinator:
                coordinator.wake()
                return
            if world.rng.random() < 0.5:
                coordinator.sleep()
            world.zombies.add(coordinator)
            stay = world.rng.choice([0.0, 0.5, 1.0])
            world.replace_coordinator(
                {p for p in world.workers if world.workers[p].id in coordinator.core.membership.members}
                if world.rng.random() < stay
                else set()
            )
            world.time.after(duration_s * world.rng.random(), coordinator.wake)
            world.time.after(duration_s, world.fenced, coordinator)

        world.time.after(world.rng.random() * 0.3, taken_over)

    def _broken_connection(self, duration_s: float) -> None:
        world = self._world
        if len(world.workers) > 1:
            a, b = world.rng.sample(sorted(world.workers), 2)
            world.links.cut(a, b, duration_s, list(world.workers.values()))

    def _deployment(self, duration_s: float) -> None:
        world = self._world
        if world.plan.managed:
            self._offer()
        elif world.coordinator is not None and world.coordinator.core.generation >= 0:
            world.coordinator.give(DeployWanted(world.versions.offer()))

    def _scale(self, duration_s: float) -> None:
        world = self._world
        if world.coordinator is not None and not world.plan.auto:
            wanted = world.rng.randint(1, min(world.plan.workers, world.plan.slots))
            if world.plan.managed:
                world.operators.ask(lambda by: ScaleAsked(by, wanted))
            else:
                world.coordinator.give(WorkersWanted(wanted))

    # Commands of operators, and what strikes them ------------------------------------------------------------

    def _offer(self, only_check: bool = False, without: str = "") -> int:
        package = opened(self._world.plan, content_of(self._world.versions.offer(), without))
        return self._world.operators.ask(lambda by: PackageOffered(by, package, only_check))

    def _leaves(self, by: int) -> None:
        """The operator goes at any moment of its rollout."""
        world = self._world
        if by:
            world.time.after(world.rng.random() * 0.3, world.operators.leave, by)

    def _unfit_deployment(self, duration_s: float) -> None:
        world = self._world
        host = world.workers.get(world.rng.randrange(world.plan.workers))
        self._offer(without="" if host is None else host.start)

    def _abandoned_deployment(self, duration_s: float) -> None:
        self._leaves(self._offer())

    def _check(self, duration_s: float) -> None:
        self._offer(only_check=True)

    def _abandoned_check(self, duration_s: float) -> None:
        self._leaves(self._offer(only_check=True))

    def _rollback(self, duration_s: float) -> None:
        only_check = self._world.rng.random() < 0.3
        self._world.operators.ask(lambda by: RollbackAsked(by, only_check))

    def _drain(self, duration_s: float) -> None:
        """An operator drains a process, and ends it when that is answered, or takes too long."""
        world = self._world
        process = world.rng.randrange(world.plan.workers)
        host = world.workers.get(process)
        if host is None:
            return
        start = host.start

        def ends() -> None:
            now = world.workers.get(process)
            if now is not None and now.start == start:
                world.crash_worker(process)
                world.time.after(duration_s, world.start_worker, process)

        world.operators.ask(lambda by: DrainAsked(by, f"process {process}"), lambda: world.time.after(0.0, ends))
        world.time.after(DRAIN_S, ends)

    def _set_aside(self, duration_s: float) -> None:
        """An operator sets a request aside that holds up a worker, as the worker's watchdog says."""
        world, coordinator = self._world, self._world.coordinator
        host = world.workers.get(world.rng.randrange(world.plan.workers))
        if host is None or coordinator is None:
            return
        coordinator.give(WorkerBusy(host.id))
        place = f"{world.rng.randrange(world.plan.slots)}:{world.rng.randrange(world.plan.requests)}"
        world.operators.ask(lambda by: SetAsideAsked(by, place, dry_run=False))

    def _rollout_without_worker(self, duration_s: float) -> None:
        self._strike(lambda: self._worker_crash(duration_s))

    def _rollout_without_coordinator(self, duration_s: float) -> None:
        self._strike(lambda: self._coordinator_crash(duration_s))

    def _rollout_without_store(self, duration_s: float) -> None:
        self._strike(lambda: self._failing_store(duration_s))

    def _strike(self, strikes: Callable[[], None]) -> None:
        """Deploys, and strikes in one of the rollout's stages, or right behind it."""
        world, stage = self._world, self._world.rng.choice([*Stage, None])
        coordinator = world.coordinator
        rolls_back = stage is Stage.READING
        by = world.operators.ask(RollbackAsked) if rolls_back else self._offer()
        until_s = world.time.now_s + STRIKE_S

        def look(before: Stage | None) -> None:
            if not by or coordinator is None or not coordinator.alive or world.time.now_s > until_s:
                return
            rollout = coordinator.plane.rollout.under_way
            now = None if rollout is None else rollout.stage
            if now is stage and (now is not None or before is not None):
                name = "behind it" if stage is None else stage.name.lower().replace("_", " ")
                self.struck[name] = self.struck.get(name, 0) + 1
                strikes()
            else:
                world.time.after(world.rng.random() * LOOK_S, look, now)

        if by:
            look(None)

    # Ingests, and what others do to their topics -------------------------------------------------------------

    def _ingest_killed(self, duration_s: float) -> None:
        self._ingests.kill()
        self._world.time.after(duration_s, self._ingests.start)

    def _second_ingest(self, duration_s: float) -> None:
        """Two read for a while, and then one of them is killed."""
        self._ingests.start_another()
        self._world.time.after(duration_s, self._ingests.kill, self._world.rng.randrange(2))

    def _zombie_ingest(self, duration_s: float) -> None:
        """One stands still, another takes over, and then the first goes on where it was."""
        self._ingests.freeze(self._world.time.now_s + duration_s)
        self._ingests.start_another()

    def _brokers_away(self, duration_s: float) -> None:
        for topic in self._struck_topics():
            topic.away = True
            self._world.time.after(duration_s, setattr, topic, "away", False)

    def _topic_made_anew(self, duration_s: float) -> None:
        for topic in self._struck_topics():
            topic.delete()
            self._world.time.after(duration_s * self._world.rng.choice([0.0, 1.0]), topic.make_anew)

    def _topic_truncated(self, duration_s: float) -> None:
        for topic in self._struck_topics():
            topic.truncate(self._world.rng.randrange(3), self._world.rng.randrange(4))

    def _topic_grows(self, duration_s: float) -> None:
        for topic in self._struck_topics():
            topic.grow()

    def _struck_topics(self) -> list[ForeignTopic]:
        """One of those that are there."""
        there = [topic for topic in self._ingests.topics.values() if topic.there]
        return [self._world.rng.choice(there)] if there else []

    def _leave(self, duration_s: float) -> None:
        self._world.leave(self._world.rng.randrange(self._world.plan.workers), duration_s)

    def _all_leave(self, duration_s: float) -> None:
        for worker in list(self._world.workers):
            self._world.leave(worker, duration_s * self._world.rng.random())

    def _coordinator_stop(self, duration_s: float) -> None:
        world, coordinator = self._world, self._world.coordinator
        if coordinator is None or coordinator.core.generation < 0:
            return
        coordinator.give(StopWanted())

        def look() -> None:
            if coordinator.alive and not coordinator.stop_ended:
                world.time.after(RESTART_S, look)
            elif world.coordinator is not coordinator:
                world.fenced(coordinator)
            elif coordinator.alive:
                coordinator.crash()
                world.time.after(duration_s, world.start_coordinator)

        look()

    def _idle(self, duration_s: float) -> None:
        world = self._world
        world.idle = True
        until_s = world.plan.idle_s - IDLE_UNTIL_S
        self._ingests.rest(world.time.now_s + until_s)
        world.time.after(until_s, setattr, world, "idle", False)
