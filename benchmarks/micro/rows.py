"""The rows of the micro-benchmarks: loads of one engine in memory, each with its app, its first state and its requests.

A new row is a `Row` in `ROWS`. It can then be timed by `python -m benchmarks.micro ROW`, and its instructions counted
by `python -m benchmarks.micro.instructions ROW`.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final, NamedTuple

import msgspec

from benchmarks.micro import bank
from benchmarks.micro.engine_loop import EngineLoop
from benchmarks.reference.transfers import START_BALANCE, transfers
from benchmarks.travelling_numbers.app import app as travelling_app
from benchmarks.travelling_numbers.app import counter
from benchmarks.travelling_numbers.shapes import SHAPES
from styx.messages import Request, encode_request
from styx.model.app import App
from styx.model.operator import Operator
from styx.model.partitioning import Key

N_SLOTS: Final = 4
SEED: Final = 7

State = Mapping[tuple[Operator, Key], Any]
"""Values by operator and key."""


class Sent(NamedTuple):
    """A request before it is encoded."""

    operator: Operator
    key: Key
    function: str
    arguments: tuple[Any, ...]


class Row(NamedTuple):
    """`state` is there before the first request. `requests` draws so many requests, the same ones each time.

    `keys` is the number of accounts of a row of transfers, which the bare loop can run too; 0 for any other row.
    """

    title: str
    app: App
    requests: Callable[[int], list[Sent]]
    state: Callable[[], State] = dict
    keys: int = 0

    def routed(self, count: int) -> list[tuple[int, bytes]]:
        """So many requests as they stand in the log, each with its slot."""
        pack = msgspec.msgpack.Encoder().encode
        return [
            (
                operator.slot_of(key, N_SLOTS),
                encode_request(Request(f"r{number}", operator.name, _plain(key), function, pack(arguments))),
            )
            for number, (operator, key, function, arguments) in enumerate(self.requests(count))
        ]

    def engine(self) -> EngineLoop:
        """A new engine that holds the state."""
        engine = EngineLoop(self.app, N_SLOTS)
        for (operator, key), value in self.state().items():
            table = engine.worker.slots[operator.slot_of(key, N_SLOTS)].state.table(operator.name)
            table.commit(-1, {key: operator.encode_state(value)})
        return engine


def _plain(key: Key) -> Any:
    """The key in the form that a request has."""
    return list(key) if isinstance(key, tuple) else key


def _transfers(keys: int, count: int) -> list[Sent]:
    return [
        Sent(bank.account, debtor, "transfer", (creditor, amount))
        for debtor, creditor, amount in transfers(count, keys, SEED)
    ]


def _accounts(keys: int) -> State:
    return {(bank.account, key): {"balance": START_BALANCE} for key in range(keys)}


def _bank(title: str, keys: int) -> Row:
    return Row(title, bank.app, partial(_transfers, keys), partial(_accounts, keys), keys)


def _within_slots(function: str, keys: int, count: int) -> list[Sent]:
    """Transfers between accounts of one slot."""
    by_slot: dict[int, list[int]] = {}
    for key in range(keys):
        by_slot.setdefault(bank.account.slot_of(key, N_SLOTS), []).append(key)
    drawn = []
    for debtor, creditor, amount in transfers(count, keys, SEED):
        near = by_slot[bank.account.slot_of(debtor, N_SLOTS)]
        there = near[creditor % len(near)]
        drawn.append(Sent(bank.account, debtor, function, (there, amount)))
    return drawn


def _near(title: str, function: str, keys: int) -> Row:
    return Row(title, bank.app, partial(_within_slots, function, keys), partial(_accounts, keys))


def _numbers(shape: str, count: int) -> list[Sent]:
    return [Sent(counter, shape, shape, arguments) for arguments in SHAPES[shape].requests(count, N_SLOTS, SEED)]


def _travelling(shape: str) -> Row:
    return Row(f"a number travels, {SHAPES[shape].title}", travelling_app, partial(_numbers, shape))


ROWS: Final = {
    "uniform": _bank("10,000 keys, uniform", 10_000),
    "hot": _bank("100 hot keys", 100),
    "near_uniform": _near("10,000 keys, uniform, within a slot, undeclared", "transfer", 10_000),
    "local_uniform": _near("10,000 keys, uniform, within a slot, local", "move", 10_000),
    "near_hot": _near("100 hot keys, within a slot, undeclared", "transfer", 100),
    "local_hot": _near("100 hot keys, within a slot, local", "move", 100),
    "number_as_argument": _travelling("as_argument"),
    "number_as_key": _travelling("as_key"),
    "number_for_a_result": _travelling("for_a_result"),
    "number_along_a_chain": _travelling("along_a_chain"),
}
"""By the name that the commands take."""
DEFAULT_ROWS: Final = ("uniform", "hot")
"""The rows of a command that is told none."""


def add_rows(parser: argparse.ArgumentParser) -> None:
    """Adds the names of rows to a command."""
    parser.add_argument(
        "rows",
        nargs="*",
        default=list(DEFAULT_ROWS),
        metavar="ROW",
        type=_row,
        help=f"of {', '.join(ROWS)} (default: {' '.join(DEFAULT_ROWS)})",
    )


def _row(name: str) -> str:
    if name not in ROWS:
        raise argparse.ArgumentTypeError(f"there is no row {name!r}; there are {', '.join(ROWS)}")
    return name
