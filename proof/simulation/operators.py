"""Operators of a simulated cluster: commands at any moment, connections that are lost midway, and what they are told.

A command is answered once, unless its coordinator or its own connection ends before. An answer is held against the log
and the store: a version is told to run when a coordinator that starts anew would find it, a worker is told to have no
slots when it has none.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from styx.coordinator.control_events import (
    Answer,
    DrainAsked,
    Event,
    OperatorGone,
    PackageOffered,
    RollbackAsked,
    RolloutEnded,
    ScaleAsked,
    SetAsideAsked,
)
from styx.deployment import versions
from styx.set_aside import place_of, read

if TYPE_CHECKING:
    from proof.simulation.coordinator_process import CoordinatorProcess
    from proof.simulation.world import World

ASK_S = 0.002
"""How long a command is on its way at most."""
COMMANDS = (PackageOffered, RollbackAsked, DrainAsked, ScaleAsked, SetAsideAsked)


@dataclass(eq=False)
class Command:
    """One that an operator gave `coordinator`; `told` is called with its answer. `gone`: nobody waits for it any more;
    `missed`: and the coordinator knows. `heard`: the coordinator has taken the command.
    """

    coordinator: CoordinatorProcess
    event: Event
    told: Callable[[], None]
    answers: list[Answer] = field(default_factory=list)
    gone: bool = False
    missed: bool = False
    heard: bool = False


class Operators:
    """`confirmed` are the versions that were told to run."""

    def __init__(self, world: World) -> None:
        self.confirmed: list[int] = []
        self._world = world
        self._commands: dict[int, Command] = {}

    def ask(self, make: Callable[[int], Event], told: Callable[[], None] = lambda: None) -> int:
        """A command of a new operator's, whose number it returns; 0 if there is no coordinator to hear it."""
        world, coordinator = self._world, self._world.coordinator
        if coordinator is None or not coordinator.alive or coordinator.core.generation < 0:
            return 0
        by = len(self._commands) + 1
        self._commands[by] = Command(coordinator, make(by), told)
        world.time.after(world.rng.random() * ASK_S, coordinator.give, self._commands[by].event)
        return by

    def leave(self, by: int) -> None:
        """The command ends, whether it is answered or not; its coordinator notices."""
        command, world = self._commands[by], self._world
        command.gone = True
        world.time.after(ASK_S + world.rng.random() * ASK_S, command.coordinator.give, OperatorGone(by))

    def missed(self, by: int) -> None:
        """A coordinator has noticed that a command has ended."""
        self._commands[by].missed = True

    def stepped(self, coordinator: CoordinatorProcess, event: Event) -> None:
        """A coordinator has taken an event. One that has stopped leaves no command open, unless the store has it."""
        if isinstance(event, COMMANDS) and event.by > 0:
            self._commands[event.by].heard = True
        if coordinator.core.ended:
            for each in self._commands.values():
                if each.coordinator is coordinator and each.heard and not isinstance(each.event, SetAsideAsked):
                    answered = each.answers or each.gone
                    assert answered, f"a coordinator that has stopped never answers: {each.event}"

    def answered(self, coordinator: CoordinatorProcess, answer: Answer) -> None:
        """A coordinator tells an operator what became of its command."""
        command = self._commands[answer.to]
        assert not command.answers, f"a command is answered twice: {command.event}: {command.answers}, {answer}"
        command.answers.append(answer)
        command.told()
        event = command.event
        if answer.done and coordinator.core.ended:
            released = [each for each in coordinator.plane.roster.workers.values() if each.released]
            kept = isinstance(event, DrainAsked) and all(
                each in released for each in coordinator.plane.roster.named(event.name) if each.leaving
            )
            assert kept or isinstance(event, SetAsideAsked), f"a coordinator that has stopped promises: {answer}"
        if isinstance(event, DrainAsked) and answer.done:
            members = coordinator.core.membership.members
            drained = [each for each in coordinator.plane.roster.named(event.name) if each.leaving]
            assert not [each for each in drained if each.number in members], "drained workers have slots"
        elif isinstance(event, ScaleAsked) and answer.done:
            assert not coordinator.stopping, "a coordinator that stops promises to scale"
            assert coordinator.core.membership.wanted == event.workers, "workers wanted are not"
        elif isinstance(event, SetAsideAsked) and answer.done:
            aside = read(self._world.store.objects)
            assert place_of(event.place) in aside, "a request is told to be set aside, and the store does not have it"
        elif isinstance(event, PackageOffered | RollbackAsked) and event.only_check:
            assert not command.missed, "a check goes on that nobody waits for"

    def rollout_ended(self, coordinator: CoordinatorProcess, ended: RolloutEnded) -> None:
        """A version runs, or never will."""
        world, core = self._world, coordinator.core
        assert coordinator.plane.rollout.version == core.app_version, "a rollout has ended, and another version runs"
        if not ended.done:
            # A note whose put has failed may be there all the same: a coordinator that starts then goes by it.
            if versions.ran_name(ended.version) not in world.store.objects.list(versions.RAN_PREFIX):
                world.versions.never.add(ended.version)
        elif ended.version in world.versions.marks:
            self.confirmed.append(ended.version)
        elif world.coordinator is coordinator:
            ran = world.store.objects.list(versions.RAN_PREFIX)
            first = versions.ran_name(ended.version) in ran and not world.versions.marks
            assert first, f"version {ended.version} is told to run, and a coordinator that starts would not find it"
            self.confirmed.append(ended.version)

    def check(self) -> None:
        """At the end: the newest version that was confirmed runs, or one that came after it."""
        coordinator = self._world.coordinator
        assert coordinator is not None
        version = coordinator.core.app_version
        assert version == coordinator.plane.rollout.version == self._world.versions.newest
        assert version >= max(self.confirmed, default=0), f"version {version} runs, and {self.confirmed} were confirmed"

    @property
    def waiting(self) -> list[Event]:
        """Commands that the present coordinator has yet to answer."""
        present = self._world.coordinator
        commands = self._commands.values()
        return [each.event for each in commands if each.coordinator is present and not (each.answers or each.gone)]
