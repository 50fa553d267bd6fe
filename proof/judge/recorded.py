"""A recorded history, in the format of Jepsen and Elle: the processes that began and ended transactions, in order.

The order that the engine claims is kept beside the history: the completions of committed transactions, by index, with
their positions when sorted by (epoch, phase, tid).
"""

from __future__ import annotations

import time
from collections import Counter
from pathlib import Path
from typing import Any, Final, Literal

import msgspec

from proof.judge.workload import MODELS, Model
from styx.errors import ConfigurationError

Step = list[Any]
"""["r", n, read], ["w", n, value] or ["append", n, value]; in a line of kind `invoke`, `read` is None. `n` is the
number of an entity, or the name of its sequence (`sequence_of`).
"""
Place = tuple[int, int, int]
"""(epoch, phase, tid)."""


Kind = Model | Literal["rows"]
"""What a history is of: one of adya's models, or rows (`proof.judge.rows`, which says what the steps are)."""
KINDS: Final[tuple[Kind, ...]] = (*MODELS, "rows")


class Op(msgspec.Struct):
    """One line of a history: `invoke`, or the outcome: `ok`, `fail` (no effect) or `info` (unknown).

    `error` of an `ok` says why its reply contradicts itself. `phase` is that of a commit.
    """

    index: int
    type: Literal["invoke", "ok", "fail", "info"]
    process: int
    time: int
    """Nanoseconds of a clock that never goes back."""
    value: list[Step]
    f: str = "txn"
    error: str | None = None
    phase: int | None = None


class Recorded(msgspec.Struct):
    """The history of one workload; `order` is the claimed position of each `ok`, by index."""

    model: Kind
    ops: list[Op] = []
    order: dict[int, int] = {}

    def count(self, type: str) -> int:
        """How many lines are of a type."""
        return sum(op.type == type for op in self.ops)

    def commits_by_phase(self) -> list[int]:
        """How many transactions have committed in each of the phases 0 to 3."""
        counts = Counter(op.phase for op in self.ops if op.type == "ok")
        return [counts[phase] for phase in range(4)]

    def save(self, folder: Path) -> None:
        """Writes both files into `folder`, which is created."""
        folder.mkdir(parents=True, exist_ok=True)
        history, order = files_of(self.model, folder)
        history.write_bytes(msgspec.json.Encoder().encode_lines(self.ops))
        order.write_bytes(msgspec.json.encode(self.order))


class Recorder:
    """Writes a history down as it happens, for processes of one event loop."""

    def __init__(self, model: Kind) -> None:
        self.model: Final[Kind] = model
        self._recorded = Recorded(model, [], {})
        self._places: dict[int, Place] = {}

    def begin(self, process: int, value: list[Step]) -> None:
        """Records a beginning. Call it before the request is sent."""
        self._add("invoke", process, value, None)

    def commit(self, process: int, value: list[Step], place: Place, wrong: str | None = None) -> None:
        """Records a commit. Call it after the reply has arrived. `wrong`: why the reply contradicts itself."""
        self._places[self._add("ok", process, value, wrong, place[1])] = place

    def fail(self, process: int, value: list[Step], error: str) -> None:
        """Records that the transaction had no effect."""
        self._add("fail", process, value, error)

    def lose(self, process: int, value: list[Step], error: str) -> None:
        """Records an unknown outcome. The process must not be used again."""
        self._add("info", process, value, error)

    def recorded(self) -> Recorded:
        """The history so far, with the claimed order."""
        positions = {place: position for position, place in enumerate(sorted(set(self._places.values())))}
        self._recorded.order = {index: positions[place] for index, place in self._places.items()}
        return self._recorded

    def _add(
        self,
        type: Literal["invoke", "ok", "fail", "info"],
        process: int,
        value: list[Step],
        error: str | None,
        phase: int | None = None,
    ) -> int:
        index = len(self._recorded.ops)
        self._recorded.ops.append(Op(index, type, process, time.monotonic_ns(), value, error=error, phase=phase))
        return index


def sequence_of(n: int) -> str:
    """The name in a history of the sequence of entity `n`."""
    return f"{n}/sequence"


def files_of(model: Kind, folder: Path) -> tuple[Path, Path]:
    """The files of the history and of the claimed order."""
    return folder / f"{model}.history.jsonl", folder / f"{model}.order.json"


def load(folder: Path) -> list[Recorded]:
    """The histories in `folder`. Raises `ConfigurationError` if there is none, and `OSError`."""
    found = []
    for model in KINDS:
        history, order = files_of(model, folder)
        if history.exists():
            ops = msgspec.json.Decoder(Op).decode_lines(history.read_bytes())
            found.append(Recorded(model, ops, msgspec.json.decode(order.read_bytes(), type=dict[int, int])))
    if not found:
        raise ConfigurationError(f"{folder} holds no history: record one with `python -m proof.judge run`")
    return found
