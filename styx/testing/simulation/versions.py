"""Versions of the chaos app that differ in what every program computes, and which epochs ran on which.

The engine's own markers say where a version began; whether it keeps to that, the history tells. Never run by hand.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from styx.app import App
from styx.context import Context
from styx.operator import Operator
from styx.sequencer.epoch_record import GenerationMarker
from styx.testing import chaos_app
from styx.testing.chaos_app import Cell, Program, account, number, pair, text


@cache
def version_of_chaos(version: int) -> App:
    """The chaos app with programs whose register begins at the version's number instead of 0."""
    if version == 0:
        return chaos_app.app
    operators = [
        Operator(text.name, key_type=str),
        Operator(number.name, key_type=int, state_type=Cell),
        Operator(pair.name, n_partitions=pair.n_partitions, key_type=(int, int), partition_key=_first),
    ]

    async def run(ctx: Context, program: list[Any], caller: list[Any] | None = None) -> Any:
        running = Program(ctx, program, caller)
        running.register = version
        await running.run(program)
        return running.register

    for operator in operators:
        operator.register(run)
    return App(chaos_app.app.name, [*operators, account])


def _first(key: tuple[int, int]) -> int:
    return key[0]


class Versions:
    """`began`: versions by the first epoch that ran on them, as the log's markers say."""

    def __init__(self) -> None:
        self.began: dict[int, int] = {0: 0}
        self.offered = 0
        self._newest = 0

    def offer(self) -> int:
        """A number that no version had."""
        self.offered += 1
        return self.offered

    def marked(self, marker: GenerationMarker) -> None:
        """A generation's marker is durable."""
        if marker.app_version != self._newest:
            self._newest = marker.app_version
            self.began[marker.snapshot_epoch + 1] = marker.app_version

    def apps(self) -> dict[int, App]:
        """Apps by the first epoch that ran on them."""
        return {epoch: version_of_chaos(version) for epoch, version in self.began.items()}
