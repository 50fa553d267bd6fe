"""A cluster by hand with its control plane: workers arrive and take code, operators give commands, packages are stored.

Of what the protocol does the lines that every epoch has are left out; the transcripts of the protocol have them.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial
from typing import Any

from styx.coordinator.control_events import (
    Admit,
    Announce,
    Answer,
    CodeTaken,
    ControlEffect,
    Disconnect,
    DrainAsked,
    Event,
    HandOut,
    LeaveAsked,
    NoteRunning,
    OperatorGone,
    Package,
    PackageOffered,
    ReadVersionBefore,
    RollbackAsked,
    RolloutEnded,
    ScaleAsked,
    Serve,
    StandBy,
    StorePackage,
    StoreRuntime,
    TurnAway,
    WorkerArrived,
    WorkerBeat,
)
from styx.coordinator.control_plane import ControlPlane
from styx.coordinator.events import Effect as CoordinatorEffect
from styx.coordinator.events import Started, Tick
from styx.errors import ConfigurationError
from styx.host.control_host import ControlHost, ControlPorts, read_control_beginning
from styx.host.ports import Objects
from styx.model.app import App
from styx.model.limits import Limits
from styx.protocol.messages import CheckState, Recover, ToWorker
from styx.schema.description import describe
from styx.worker.events import Step
from styx.worker.worker import Worker
from tests.protocol.cluster import Cluster
from tests.protocol.scripted_app import app, version

RUNTIME = "one Python"
_EVERY_EPOCH = re.compile(
    r"epoch \d+ (started|join|done|validate|in conflict|commit$)|appends the record|^w\d+: (stores|loads) slot|"
    r"^w\d+: (stores|loads)|after epoch \d+ stored|(sweeps|deletes|releases) the|: fences|^c -> .*: resume$|: loaded$"
)
_STORED = StorePackage | NoteRunning | StoreRuntime | ReadVersionBefore


def is_told(line: str) -> bool:
    """Whether a transcript of the control plane has this line."""
    return _EVERY_EPOCH.search(line) is None


class ManagedCluster(Cluster):
    """`contents` are apps by what stands for them in a package: a word, and the workers that cannot run it."""

    def __init__(
        self, workers: int, slots: int, limits: Limits, snapshot_interval_s: float, wanted: int | None
    ) -> None:
        self.contents: dict[bytes, App] = {}
        self.code: dict[int, dict[int, App]] = {}
        self._operators = 0
        super().__init__(workers, slots, limits, snapshot_interval_s, wanted)

    # Processes ---------------------------------------------------------------------------------------------

    def host(self, objects: Objects) -> None:
        """As `Cluster.host`, with the control plane around the core."""
        super().host(objects)
        self.plane = ControlPlane(self.coordinator, app.name, RUNTIME)
        ports = ControlPorts(ToldOf(self.hand_out), objects, self._opened, _no_such_place)
        self.control = ControlHost(self.plane, self.protocol, ports, self.to_coordinator)
        self.take, self.do = self.plane.step, self.control.do

    def begin(self, started: Started) -> None:
        """As a cluster's coordinator begins: with the version that runs."""
        self.control.begin(read_control_beginning(self.storage.store, self.storage.log))

    def connect(self, worker: int) -> None:
        self.processes[worker].connected = True
        self.code[worker] = {}
        self.to_coordinator(WorkerArrived(worker, f"w{worker}", f"w{worker}", f"w{worker}", RUNTIME))

    def code_for(self, core: Worker, message: ToWorker) -> None:
        """A worker runs and checks what it has taken, and nothing else."""
        if isinstance(message, Recover):
            core.run_app(self.code[core.id][message.app_version])
        elif isinstance(message, CheckState) and message.version is not None:
            core.offer_app(message.version, self.code[core.id][message.version])

    # Operators and signs of life -----------------------------------------------------------------------------

    def offer(self, content: str, kind: list[str], only_check: bool = False) -> None:
        self.contents[content.encode()] = version(kind[0], int(*kind[1:])) if kind else app
        package = self._package(content.encode())
        self.operator(lambda by: PackageOffered(by, package, only_check))

    def roll_back(self) -> None:
        self.operator(RollbackAsked)

    def scale(self, workers: int) -> None:
        self.operator(lambda by: ScaleAsked(by, workers))

    def drain(self, name: str) -> None:
        self.operator(lambda by: DrainAsked(by, name))

    def operator(self, make: Callable[[int], Event]) -> None:
        self._operators += 1
        self.to_coordinator(make(self._operators))

    def operator_goes(self, by: int) -> None:
        self.to_coordinator(OperatorGone(by))

    def leave(self, worker: int) -> None:
        self.to_coordinator(LeaveAsked(worker))

    def alive(self) -> None:
        """Every worker gives a sign of life; the coordinator's clock goes on."""
        for process in self.processes.values():
            core = process.core
            loaded = core.reached not in (Step.LOADING, Step.LOADED)
            self.to_coordinator(WorkerBeat(core.id, core.generation, loaded, core.holdings()[1]))
        self.to_coordinator(Tick(self.coordinator.clock.now_s))

    def _package(self, content: bytes) -> Package:
        return Package(content, describe(self.contents[content]), content.decode())

    def _opened(self, content: bytes) -> Package | str:
        return self._package(content)

    # What is told, and code that is handed out ---------------------------------------------------------------

    def says(self, effect: CoordinatorEffect | ControlEffect) -> tuple[str, bool]:
        """(an effect in words, whether it is told of when it is done)."""
        if isinstance(effect, _STORED):
            return f"c: {_stored(effect)}", False
        words = _words(effect)
        return super().says(effect) if words is None else (words, True)  # type: ignore[arg-type]

    def hand_out(self, effect: HandOut) -> None:
        content = effect.package.content
        process = self.processes.get(effect.worker)
        link = f"c -> w{effect.worker}"
        if process is not None and process.connected:
            self.links.put(link, f"{link}: version {effect.version}", partial(self._code_comes, effect, content))

    def _code_comes(self, effect: HandOut, content: bytes) -> None:
        worker, link = effect.worker, f"w{effect.worker} -> c"
        can = f"w{worker}" not in content.decode().split()[1:]
        if can:
            self.code[worker][effect.version] = self.contents[content]
        if effect.version > 0:
            self.versions[effect.version] = self.contents[content]
        problem = "" if can else "No module named 'shop'"
        line = f"{link}: {'can' if can else 'cannot'} run version {effect.version}"
        self.trace.append(line + " [held]" * (link in self.links.held))
        self.links.put(link, line, partial(self.to_coordinator, CodeTaken(worker, effect.version, problem)))


class ToldOf:
    """Connections of which the transcript says what they are used for; a worker hears what it is handed."""

    def __init__(self, hand_out: Callable[[HandOut], None]) -> None:
        self.hand_out = hand_out

    def admit(self, effect: Any) -> None:
        """Nobody does anything."""

    turn_away = disconnect = stand_by = serve = announce = answer = rollout_ended = admit


def _no_such_place(place: str, dry_run: bool) -> str:
    raise ConfigurationError(f"there is no request {place}")


def _stored(effect: StorePackage | NoteRunning | StoreRuntime | ReadVersionBefore) -> str:
    if isinstance(effect, StorePackage):
        return f"stores the package {effect.package.content.decode()!r}"
    if isinstance(effect, NoteRunning):
        return f"notes in the store that version {effect.version} has run"
    if isinstance(effect, ReadVersionBefore):
        return f"reads the version before {effect.version}"
    return f"stores that the workers run on {effect.runtime}"


def _words(effect: object) -> str | None:
    if isinstance(effect, HandOut):
        return f"c -> w{effect.worker}: version {effect.version} is {effect.package.content.decode()!r}"
    if isinstance(effect, Answer):
        return (
            f"c -> operator {effect.to}: {'done' if effect.done else 'refused'}: {' / '.join(effect.text.splitlines())}"
        )
    if isinstance(effect, StandBy):
        why = "enough others take part" if effect.spare else "and is to get some"
        return f"c -> w{effect.worker}: it has no slots, {why}"
    if isinstance(effect, Announce):
        return f"c -> gateways: version {effect.version} runs"
    if isinstance(effect, RolloutEnded):
        what = "has taken effect" if effect.done else "has changed nothing"
        return f"c: the rollout {what}"
    if isinstance(effect, Admit):
        return f"c -> w{effect.worker}: welcome"
    if isinstance(effect, TurnAway | Disconnect):
        return f"c -> w{effect.worker}: {effect.reason}"
    return f"c -> gateway {effect.gateway}: welcome" if isinstance(effect, Serve) else None
