"""Versions of the chaos app that differ in what every program computes, and which epochs ran on which.

Each stores the entities of one operator in a form of its own, so that a deployment converts all of them; every third
one has a type for another operator's that does not take all values, so that some are refused. The engine's own markers
say where a version began; whether it keeps to that, the history tells. Never run by hand.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from typing import Annotated, Any, Final, Literal, TypedDict

import msgspec

from proof import chaos_app
from proof.chaos_app import MODULUS, Cell, Program, account, number, pair, text
from styx.coordinator.events import StateFound
from styx.model.app import App
from styx.model.context import Context
from styx.model.operator import Operator
from styx.sequencer.epoch_record import GenerationMarker

_CHOOSY_EVERY: Final = 3


class _Small(TypedDict):
    """What a choosy version stores of a pair: about nine in ten numbers."""

    number: Annotated[int, msgspec.Meta(lt=MODULUS * 9 // 10)]
    counter: int
    note: str


@cache
def version_of_chaos(version: int) -> App:
    """The chaos app with programs whose register begins at the version's number instead of 0."""
    if version == 0:
        return chaos_app.app
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

    async def run(ctx: Context, program: list[Any], caller: list[Any] | None = None) -> Any:
        running = Program(ctx, program, caller)
        running.register = version
        running.cell = new.get(ctx.operator, Cell)
        await running.run(program)
        return running.register

    for operator in operators:
        operator.register(run)
    return App(chaos_app.app.name, [*operators, account])


def _marked(cell: Any, version: int, old: Any) -> Any:
    """Another number, so that it shows in replies whether, and how often, a state was converted."""
    return cell(number=(3 * old["number"] + version) % MODULUS, counter=old["counter"], note=old["note"], mark=version)


def _first(key: tuple[int, int]) -> int:
    return key[0]


class Versions:
    """`began`: versions by the first epoch that ran on them, as the log's markers say. `checked` versions were
    looked at, and `refused` for what is stored, of them `late` for what was changed after the first look.
    """

    def __init__(self) -> None:
        self.began: dict[int, int] = {0: 0}
        self.offered = 0
        self.checked = 0
        self.refused = 0
        self.late = 0
        self._newest = 0
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
        if marker.app_version != self._newest:
            self._newest = marker.app_version
            self.began[marker.snapshot_epoch + 1] = marker.app_version

    def counts(self) -> dict[str, int]:
        """How many versions were checked, were refused for what is stored, were so after the first look, and ran."""
        began = len(self.began) - 1
        counts = {"checked": self.checked, "refused": self.refused, "refused late": self.late, "began": began}
        return {what: count for what, count in counts.items() if count}

    def apps(self) -> dict[int, App]:
        """Apps by the first epoch that ran on them."""
        return {epoch: version_of_chaos(version) for epoch, version in self.began.items()}
