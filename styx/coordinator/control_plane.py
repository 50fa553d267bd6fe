"""The control plane of a cluster: one pure state machine around the protocol's, events in, effects out.

It says who may take part, which version of the app runs, who leaves and who stands by, and answers operators. What it
decides happens to the protocol (`Coordinator`) as events, and what that decides passes through here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final

from styx.coordinator.control_events import (
    A_WORKER,
    Admit,
    Answer,
    AsidePut,
    CodeTaken,
    ControlEffect,
    Disconnect,
    DrainAsked,
    Effect,
    Event,
    GatewayArrived,
    LeaveAsked,
    OperatorGone,
    PackageOffered,
    PackageStored,
    PutAside,
    RollbackAsked,
    RunningNoted,
    RuntimeStored,
    Said,
    ScaleAsked,
    Serve,
    SetAsideAsked,
    ToCore,
    VersionFound,
    VersionRead,
    WorkerArrived,
    WorkerBeat,
    WorkerBusy,
)
from styx.coordinator.coordinator import Coordinator
from styx.coordinator.departures import Departures
from styx.coordinator.events import (
    Event as CoreEvent,
)
from styx.coordinator.events import (
    Expel,
    Heard,
    ReleaseWorker,
    StateFound,
    StopWanted,
    Tick,
    WorkerJoined,
    WorkerLost,
    WorkersWanted,
)
from styx.coordinator.rollout import Rollout
from styx.coordinator.roster import Registration, Roster, Runtimes

HELD_UP_S: Final = 2.0
"""A worker of which its watchdog has said nothing for so long is held up no more."""


class ControlPlane:
    """`step` is its whole interface. Reading its fields is fine, changing them is not.

    Parameters: the protocol that it is around; the app's name; the runtime of epochs that are to be replayed, empty
    without any.
    """

    def __init__(self, core: Coordinator, app: str, recorded_runtime: str = "") -> None:
        self.core = core
        self.roster = Roster()
        self.rollout = Rollout(app, core, self.roster)
        self.departures = Departures(core, self.roster)
        self.runtimes = Runtimes(recorded_runtime)
        self._stopping = False
        self._effects: list[Effect] = []
        self._take: dict[type, Any] = {
            VersionFound: lambda event: self._say(self.rollout.found(event)),
            WorkerArrived: lambda event: self._admit(*self.runtimes.arrived(event)),
            RuntimeStored: lambda event: self._admit(*self.runtimes.stored(event)),
            WorkerLost: self._lost,
            WorkerBeat: self._beat,
            WorkerBusy: self._busy,
            LeaveAsked: self._leave_asked,
            CodeTaken: self._code_taken,
            GatewayArrived: self._gateway_arrived,
            PackageOffered: lambda event: self._asked(event, "deploy", self.rollout.offered),
            RollbackAsked: lambda event: self._asked(event, "roll back", self.rollout.back_asked),
            VersionRead: lambda event: self._say(self.rollout.version_read(event)),
            PackageStored: lambda event: self._say(self.rollout.stored(event)),
            RunningNoted: lambda event: self._say(self.rollout.noted(event)),
            OperatorGone: lambda event: self._say(self.rollout.operator_gone(event.by)),
            DrainAsked: lambda event: self._asked(event, "drain", self.departures.drain),
            ScaleAsked: lambda event: self._asked(event, "scale", self._scale),
            SetAsideAsked: lambda event: self._say([PutAside(event.by, event.place, event.dry_run)]),
            AsidePut: self._aside_put,
            Tick: self._tick,
        }

    def step(self, event: Event) -> list[Effect]:
        """Takes one event; returns what is to be done, in order."""
        self._effects, rollout = [], self.rollout.under_way
        take = self._take.get(type(event))
        if take is None:
            self._core(event)  # type: ignore[arg-type]  # all others are the protocol's
        else:
            take(event)
        while (said := self.rollout.advance()) is not None:
            self._say(said)
        if rollout is not None and self.rollout.under_way is not rollout:
            # Some could not run what was about to be switched to, or had yet to say so, and can run what is active now.
            self._join(self.roster.workers.values())
        self._say(self.departures.answers())
        return self._effects

    # The protocol ------------------------------------------------------------------------------------------

    def _core(self, event: CoreEvent) -> None:
        """The event happens to the protocol, and what follows of it to the control plane."""
        self._stopping |= isinstance(event, StopWanted)
        for effect in self.core.step(event):
            self._effects.append(effect)
            if isinstance(effect, StateFound):
                self._say(self.rollout.state_found(effect))
            elif isinstance(effect, ReleaseWorker):
                self.departures.released(effect.worker)
            elif isinstance(effect, Expel):
                self.roster.workers.pop(effect.worker, None)

    def _say(self, said: Iterable[Said]) -> None:
        for each in said:
            if isinstance(each, ToCore):
                self._core(each)
            else:
                self._effects.append(each)

    def _tick(self, event: Tick) -> None:
        self._core(event)
        self._say(self.departures.stand_by())

    # Workers -----------------------------------------------------------------------------------------------

    def _admit(self, admitted: list[WorkerArrived], said: list[ControlEffect]) -> None:
        self._effects += said
        for each in admitted:
            worker = Registration(each.worker, each.name, each.incarnation, each.address)
            self.roster.workers[each.worker] = worker
            self._effects.append(Admit(each.worker))
            self._say(self.departures.registered(worker))
            self._say(self.rollout.registered(each.worker))

    def _code_taken(self, event: CodeTaken) -> None:
        worker = self.roster.workers.get(event.worker)
        if worker is None:
            return
        if event.problem:
            worker.refused[event.version] = event.problem
        else:
            worker.taken.add(event.version)
            self._join([worker])

    def _join(self, workers: Iterable[Registration]) -> None:
        """Workers become known to the protocol once they can run what runs."""
        for worker in list(workers):
            if not worker.joined and not worker.leaving and self.rollout.may_join(worker):
                worker.joined = True
                self._core(WorkerJoined(worker.number, worker.address))

    def _lost(self, event: WorkerLost) -> None:
        self.runtimes.lost(event.worker)
        worker = self.roster.workers.pop(event.worker, None)
        if worker is not None and worker.joined:
            self._core(event)

    def _beat(self, event: WorkerBeat) -> None:
        worker = self.roster.workers.get(event.worker)
        if worker is not None:
            worker.beat = event
            self._core(Heard(event.worker))

    def _busy(self, event: WorkerBusy) -> None:
        worker = self.roster.workers.get(event.worker)
        if worker is not None:
            worker.busy_at_s = self.core.clock.now_s
            self._core(Heard(event.worker))

    def _leave_asked(self, event: LeaveAsked) -> None:
        worker = self.roster.workers.get(event.worker)
        if worker is not None:
            self._say(self.departures.leave(worker))

    # Gateways and operators --------------------------------------------------------------------------------

    def _gateway_arrived(self, event: GatewayArrived) -> None:
        active = self.rollout.active
        self._effects.append(Serve(event.gateway, *active) if active is not None else Serve(event.gateway, 0, None))

    def _asked(self, event: Any, verb: str, take: Callable[[Any], list[Said]]) -> None:
        """A command; a coordinator that stops promises nothing that only another one could do."""
        if not self._stopping and not self.core.ended:
            self._say(take(event))
        elif event.by != A_WORKER:  # a worker offers its package to the next coordinator, too
            state = "has stopped" if self.core.ended else "is stopping"
            self._answer(event.by, False, f"the coordinator {state}: {verb} again once there is another one")

    def _answer(self, to: int, done: bool, text: str, failed: bool = False) -> None:
        self._effects.append(Answer(to, done, text, failed))

    def _scale(self, event: ScaleAsked) -> list[Said]:
        n_slots = self.core.n_slots
        if self.core.membership.wanted is None:
            reason = (
                "the coordinator was started with --workers auto, and all workers share the slots: "
                "start or stop workers instead"
            )
            return [Answer(event.by, False, reason)]
        if not 1 <= event.workers <= n_slots:
            reason = f"{n_slots} slots can be shared by 1 to {n_slots} workers, not by {event.workers}"
            return [Answer(event.by, False, reason)]
        promise = f"workers wanted: {event.workers}; slots move once they are there"
        return [WorkersWanted(event.workers), Answer(event.by, True, promise)]

    def _aside_put(self, event: AsidePut) -> None:
        """The store has it: the next generation refuses the request. A worker that is held up takes no part in that
        generation: its registration ends, so that the others go on at once, and it registers anew when it can.
        """
        effect = event.effect
        if not event.done or effect.dry_run or not effect.place:
            self._answer(effect.by, event.done, event.text, event.failed)
            return
        now_s = self.core.clock.now_s
        there = [] if self.core.ended else self.roster.workers.values()
        held_up = [each for each in there if now_s - each.busy_at_s <= HELD_UP_S]
        for each in held_up:
            reason = f"it is held up, and the request {effect.place} is set aside"
            self._effects.append(Disconnect(each.number, reason))
        if not held_up:
            then = "; this takes effect with the next generation, when a worker fails at it or is started again"
        else:
            names = ", ".join(sorted(each.name for each in held_up))
            then = (
                f". The others go on without {names}, which was held up and comes back when its function ends; if it "
                "does not, end that process (SIGTERM) and start it again"
            )
        self._answer(effect.by, True, event.text + then)
