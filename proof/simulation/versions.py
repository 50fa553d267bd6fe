"""Versions of the chaos app that differ in what every program computes, and which epochs ran on which.

Each stores the entities of one operator in a form of its own, so that a deployment converts all of them; every third
one has a type for another operator's that does not take all values, so that some are refused. Every second one has no
references to other entities, so that the next one has them anew. The engine's own markers
say where a version began; whether it keeps to that, the history tells. Never run by hand.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from typing import Annotated, Any, Final, Literal, TypedDict

import msgspec

from proof import chaos_app
from proof.bank import account
from proof.chaos_app import MODULUS, Cell, Program, number, pair, register_sweeps, text
from proof.cron_ticks import register_ticks, with_ticks
from proof.emit_steps import EVENTS
from proof.landing_steps import register_landings
from proof.life_steps import fleeting
from proof.link_steps import declare_links
from proof.row_steps import declare_tables
from proof.simulation.plan import SimulationPlan
from styx.coordinator.control_events import Package
from styx.coordinator.events import StateFound
from styx.deployment.versions import load_version
from styx.model.app import App
from styx.model.context import Context
from styx.model.operator import Operator
from styx.schema.description import describe
from styx.sequencer.epoch_record import GenerationMarker
from styx.store.base import StoreReader

_CHOOSY_EVERY: Final = 3
_FREE_EVERY: Final = 2
_WITHOUT: Final = " but not on "


class _Small(TypedDict):
    """The numbers of a pair that a choosy version stores: about nine in ten."""

    number: Annotated[int, msgspec.Meta(lt=MODULUS * 9 // 10)]
    counter: int
    note: str


def version_for(plan: SimulationPlan, version: int) -> App:
    """A version of the chaos app, with events, ingests and crons where the plan has them."""
    return with_ticks(_version_of_chaos(version, plan.emits > 0, plan.ingests > 0), version)


@cache
def _version_of_chaos(version: int, emitting: bool, ingesting: bool) -> App:
    """The chaos app with programs whose register begins at the version's number instead of 0; in every second version
    `look` is a function like any other.
    """
    landings = register_landings(version, emitting) if ingesting else []
    if version == 0 and landings:
        operators = [text, number, pair, account, fleeting, *landings]
        return App(chaos_app.app.name, operators, events=EVENTS if emitting else ())
    if version == 0:
        return chaos_app.emitting if emitting else chaos_app.app
    cell = msgspec.defstruct("MarkedCell", [("mark", Literal[version])], bases=(Cell,), kw_only=True)
    new: dict[str, Callable[[], Any]] = {number.name: partial(cell, mark=version)}
    choosy = version % _CHOOSY_EVERY == _CHOOSY_EVERY - 1
    operators = [
        Operator(text.name, key_type=str),
        Operator(number.name, key_type=int, state_type=cell, migrate=partial(_marked, cell, version)),
        Operator(
            pair.name,
            n_partitions=pair.n_partitions,
            key_type=(int, int),
            partition_key=_first,
            state_type=_Small if choosy else None,
        ),
    ]

    async def interpret(running: Program, program: list[Any]) -> Any:
        running.cell = new.get(running.ctx.operator, Cell)
        await running.run(program)
        return running.register

    async def run(ctx: Context, program: list[Any], caller: list[Any] | None = None, register: int = 0) -> Any:
        return await interpret(Program(ctx, program, caller, version + register), program)

    async def near(ctx: Context, program: list[Any], caller: list[Any] | None = None, register: int = 0) -> Any:
        return await interpret(Program(ctx, program, caller, version + register, near=True), program)

    async def hot(ctx: Context, program: list[Any], caller: list[Any] | None = None, register: int = 0) -> Any:
        return await run(ctx, program, caller, register)

    async def look(ctx: Context, program: list[Any], caller: list[Any] | None = None) -> Any:
        return await run(ctx, program, caller)

    for operator in operators:
        declare_tables(operator)
    declare_links(operators, referring=version % _FREE_EVERY != _FREE_EVERY - 1)
    for operator in operators:
        operator.register(run)
        operator.register(contended=version % 2 == 0)(hot)
        operator.register(local=True)(near)
        operator.register(read_only=version % 2 == 0)(look)
        register_sweeps(operator)
    register_ticks(operators[0])
    return App(chaos_app.app.name, [*operators, account, *landings], events=EVENTS if emitting else ())


def opened(plan: SimulationPlan, content: bytes) -> Package:
    """The package with this content: the number of an app, and which start of a process cannot run it."""
    return _opened(content, plan.emits > 0, plan.ingests > 0)


@cache
def _opened(content: bytes, emitting: bool, ingesting: bool) -> Package:
    app = _version_of_chaos(number_of(content), emitting, ingesting)
    return Package(content, describe(app), content.decode())


def number_of(content: bytes) -> int:
    """Of the app in this package."""
    return int(content.split()[0])


def content_of(number: int, without: str = "") -> bytes:
    """What stands for this app in a package, which does not run `without` something."""
    return f"{number}{_WITHOUT}{without}".encode() if without else str(number).encode()


def forget_versions() -> None:
    """All are made anew when they are needed, for a test that has changed what they consist of."""
    _version_of_chaos.cache_clear()
    _opened.cache_clear()


def runs_on(content: bytes, start: str) -> bool:
    """Whether this start of a process can run it."""
    _, _, without = content.decode().partition(_WITHOUT)
    return without != start


def _marked(cell: Any, version: int, old: Any) -> Any:
    """Another number, so that it shows in replies whether, and how often, a state was converted."""
    return cell(number=(3 * old["number"] + version) % MODULUS, counter=old["counter"], note=old["note"], mark=version)


def _first(key: tuple[int, int]) -> int:
    return key[0]


class Versions:
    """`began`: versions by the first epoch that ran on them, as the log's markers say. `checked` versions were
    looked at, and `refused` for what is stored, of them `late` for what was changed after the first look.

    Where versions are packages in the store, their numbers there and those of the apps in them differ: `marks` are
    numbers of versions that a marker names, `never` those of versions that were refused.
    """

    def __init__(self, plan: SimulationPlan, store: StoreReader | None = None) -> None:
        self.marks: set[int] = set()
        self.never: set[int] = set()
        self._store = store
        self._plan = plan
        self.began: dict[int, int] = {0: 0}
        self.offered = 0
        self.checked = 0
        self.refused = 0
        self.late = 0
        self.newest = 0
        self._passed: set[int] = set()

    def offer(self) -> int:
        """A number that no version had."""
        self.offered += 1
        return self.offered

    def found(self, effect: StateFound) -> None:
        """The coordinator has found out whether a version fits."""
        late = effect.version in self._passed
        self._passed.add(effect.version)
        self.checked += not late
        self.refused += bool(effect.findings.offenders)
        self.late += late and bool(effect.findings.offenders)

    def marked(self, marker: GenerationMarker) -> None:
        """A generation's marker is durable."""
        assert marker.app_version not in self.never, f"version {marker.app_version} was refused, and runs"
        self.marks.add(marker.app_version)
        if marker.app_version != self.newest:
            self.newest = marker.app_version
            self.began[marker.snapshot_epoch + 1] = self._app_in(marker.app_version)

    def _app_in(self, version: int) -> int:
        package = None if self._store is None else load_version(self._store, version)
        return version if package is None else number_of(package)

    def counts(self) -> dict[str, int]:
        """How many versions were checked, were refused for what is stored, were so after the first look, and ran."""
        began = len(self.began) - 1
        counts = {"checked": self.checked, "refused": self.refused, "refused late": self.late, "began": began}
        return {what: count for what, count in counts.items() if count}

    def apps(self) -> dict[int, App]:
        """Apps by the first epoch that ran on them."""
        return {epoch: version_for(self._plan, version) for epoch, version in self.began.items()}
