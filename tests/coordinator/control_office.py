"""A control plane under test: two slots, workers by name, packages that differ by a word. Judges no rule."""

from __future__ import annotations

from styx.coordinator.control_events import (
    Answer,
    CodeTaken,
    Effect,
    Event,
    HandOut,
    Package,
    PackageOffered,
    PackageStored,
    RunningNoted,
    WorkerArrived,
    WorkerBeat,
)
from styx.coordinator.control_plane import ControlPlane
from styx.coordinator.coordinator import Coordinator
from styx.coordinator.events import MarkerAppended, MembersFenced, Started, WorkerSaid
from styx.protocol.messages import Loaded, StateChecked
from styx.schema.description import AppDescription, OperatorDescription
from styx.schema.state_findings import StateFindings

OPERATOR = 7
RUNTIME = "CPython 3.11"


def package(word: str, *operators: str, app: str = "shop", migrate: bool = False) -> Package:
    """Code that is `word`, with these operators."""
    described = {
        name: OperatorDescription(n_partitions=None, key_type="str", partition_key=False, functions={}, migrate=migrate)
        for name in operators
    }
    return Package(word.encode(), AppDescription(name=app, operators=described), word)


class ControlOffice:
    """`step` gives what one event has for effects; `did` has all so far."""

    def __init__(self, wanted: int | None = 1, recorded_runtime: str = RUNTIME) -> None:
        self.core = Coordinator(2, wanted)
        self.plane = ControlPlane(self.core, "shop", recorded_runtime)
        self.did: list[Effect] = []
        self._numbers: dict[str, int] = {}

    def step(self, event: Event) -> list[Effect]:
        effects = self.plane.step(event)
        self.did += effects
        return effects

    def arrives(self, name: str, runtime: str = RUNTIME) -> int:
        """A worker connects, under a number that nobody had."""
        self.step_arrival(name, runtime)
        return self.number(name)

    def step_arrival(self, name: str, runtime: str = RUNTIME) -> list[Effect]:
        """The same; what it has for effects."""
        number = self._numbers[name] = len(self._numbers) + 1
        return self.step(WorkerArrived(number, name, f"process {name}", f"host/{name}", runtime))

    def takes(self, worker: int, version: int, problem: str = "") -> list[Effect]:
        return self.step(CodeTaken(worker, version, problem))

    def beats(self, worker: int, *operators: str) -> list[Effect]:
        return self.step(WorkerBeat(worker, self.core.generation, True, list(operators)))

    def loads(self) -> None:
        """The generation that is being fenced begins: its members load and say which operators have state."""
        assert self.core.phase.name == "FENCING"
        self.step(MembersFenced(self.core.generation))
        self.step(MarkerAppended(self.core.generation))
        for worker in sorted(self.core.membership.members):
            self.step(WorkerSaid(worker, Loaded(self.core.generation, -1)))
        assert self.core.phase.name == "RUNNING"

    def runs(self, *names: str) -> ControlOffice:
        """Version 1, `one`, runs on these workers, which have state of operator `cart`."""
        self.step(Started(0, []))
        self.offered("one", "cart")
        self.step(PackageStored(1))
        self.step(RunningNoted(1))
        for name in names:
            self.takes(self.arrives(name), 1)
        self.loads()
        for name in names:
            self.beats(self.number(name), "cart")
        self.did = []
        return self

    def number(self, name: str) -> int:
        return self._numbers[name]

    def offered(self, word: str, *operators: str, by: int = OPERATOR, only_check: bool = False) -> list[Effect]:
        return self.step(PackageOffered(by, package(word, *operators), only_check))

    def checked(self, version: int, findings: StateFindings | None = None, epoch: int = -1) -> list[Effect]:
        """Every member says what it found."""
        effects: list[Effect] = []
        for worker in sorted(self.core.membership.members):
            found = StateChecked(self.core.generation, version, epoch, findings or StateFindings(10))
            effects += self.step(WorkerSaid(worker, found))
        return effects

    @property
    def stage(self) -> str | None:
        rollout = self.plane.rollout.under_way
        return None if rollout is None else rollout.stage.name

    @property
    def answers(self) -> list[tuple[bool, str]]:
        return [(each.done, each.text) for each in self.did if isinstance(each, Answer) and each.to == OPERATOR]


def handed(effects: list[Effect]) -> list[tuple[int, int]]:
    """(worker, version) of what is handed out."""
    return [(each.worker, each.version) for each in effects if isinstance(each, HandOut)]
