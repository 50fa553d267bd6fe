"""The rows of the micro-benchmarks: loads of one engine in memory, each with its app, its first state and its requests.

A new row is a `Row` in `ROWS`. It can then be timed by `python -m benchmarks.micro ROW`, and its instructions counted
by `python -m benchmarks.micro.instructions ROW`.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, Final, NamedTuple

import msgspec

from benchmarks.driver.workload import Loading
from benchmarks.micro import bank, carts, emitting, orders, reacting
from benchmarks.micro.engine_loop import EngineLoop
from benchmarks.reference.transfers import START_BALANCE, transfers
from benchmarks.tpcc.app import app as tpcc_app
from benchmarks.tpcc.settings import CUSTOMERS_MIN, LOCAL, ORDINARY
from benchmarks.tpcc.settings import Settings as TpccSettings
from benchmarks.tpcc.workload import TpcC
from benchmarks.travelling_numbers.app import app as travelling_app
from benchmarks.travelling_numbers.app import counter
from benchmarks.travelling_numbers.shapes import SHAPES
from styx.messages import Request, decode_reply, encode_request
from styx.model.app import App
from styx.model.delivery import delivery_name
from styx.model.operator import Operator
from styx.model.partitioning import Key

N_SLOTS: Final = 4
SEED: Final = 7

State = Iterable[Loading]
"""States of entities, and rows of their tables."""


class Sent(NamedTuple):
    """A request before it is encoded."""

    operator: Operator
    key: Key
    function: str
    arguments: tuple[Any, ...]


class Row(NamedTuple):
    """`state` is there before the first request. `requests` draws so many requests, the same ones each time.

    `keys` is the number of accounts of a row of transfers, which the bare loop can run too; 0 for any other row. `few`
    and `many` are the transactions of the two runs whose instructions are counted. `gives`: requests may give calls for
    after their commit, whose replies come among those to requests. `keeps`: the engine keeps versions, as it does from
    the first read outside the log on.
    """

    title: str
    app: App
    requests: Callable[[int], list[Sent]]
    state: Callable[[], State] = list
    keys: int = 0
    few: int = 2_000
    many: int = 7_000
    gives: bool = False
    keeps: bool = False

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
        for loading in self.state():
            operator, table = loading.operator, loading.table
            name = operator.name if table is None else table.full_name
            encode = operator.encode_state if table is None else table.row_type.encode
            for key, value in loading.pairs:
                whole = key if table is None else (*_parts(key), *table.parts_of(value))
                slot = engine.worker.slots[operator.slot_of(key, N_SLOTS)].state
                slot.table(name).commit(-1, {whole: encode(value)})
        if self.keeps:
            generation = engine.worker.generation_data
            generation.versions.begin(-1)
            for slot_there in generation.slots.values():
                slot_there.state.keep_versions(generation.versions)
        return engine

    def answered(self, replies: list[bytes]) -> int:
        """How many of the replies are to requests."""
        if not self.gives:
            return len(replies)
        return sum(delivery_name(decode_reply(reply).request_id) is None for reply in replies)


def _parts(key: Key) -> tuple[Any, ...]:
    """The parts of an entity's key, with which its rows' keys begin."""
    return key if isinstance(key, tuple) else (key,)


def _plain(key: Key) -> Any:
    """The key in the form that a request has."""
    return list(key) if isinstance(key, tuple) else key


def _transfers(keys: int, count: int) -> list[Sent]:
    return [
        Sent(bank.account, debtor, "transfer", (creditor, amount))
        for debtor, creditor, amount in transfers(count, keys, SEED)
    ]


def _accounts(keys: int) -> State:
    return [Loading(bank.account, keys, ((key, {"balance": START_BALANCE}) for key in range(keys)))]


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


def _tpcc(at_home: str) -> Row:
    workload = TpcC(TpccSettings(warehouses=1, items=1_000, customers=CUSTOMERS_MIN, at_home=at_home))

    def requests(count: int) -> list[Sent]:
        generator = workload.generator(0, 1, SEED)
        return [Sent(*generator.next()[1:5]) for _ in range(count)]

    return Row(f"TPC-C, one warehouse, {at_home} functions", tpcc_app, requests, workload.initial, few=300, many=1_300)


def _on_carts(load: carts.Load) -> Row:
    def requests(count: int) -> list[Sent]:
        name = load.function.__name__
        return [Sent(carts.cart, number % carts.CARTS, name, load.arguments(number)) for number in range(count)]

    return Row(load.title, carts.app, requests, load.state, few=load.few, many=load.many)


def _on_orders(load: orders.Load) -> Row:
    def requests(count: int) -> list[Sent]:
        name = load.function.__name__
        return [Sent(load.operator, number % orders.KEYS, name, (number,)) for number in range(count)]

    return Row(load.title, orders.app, requests, few=100, many=400)


def _emitting(load: emitting.Load) -> Row:
    def requests(count: int) -> list[Sent]:
        return [Sent(emitting.order, number % emitting.ORDERS, load.function, (number,)) for number in range(count)]

    return Row(load.title, emitting.app, requests)


def _reacting(load: reacting.Load) -> Row:
    def sent(number: int) -> Sent:
        if load.two and number % 2:
            return Sent(reacting.ledger, number // 2 % load.orders, "write", (number,))
        return Sent(reacting.order, number % load.orders, load.function, (number,))

    return Row(load.title, reacting.app, lambda count: list(map(sent, range(count))), gives=not load.two)


ROWS: Final = {
    "uniform": _bank("10,000 keys, uniform", 10_000),
    "hot": _bank("100 hot keys", 100),
    "uniform_kept": _bank("10,000 keys, uniform, versions are kept", 10_000)._replace(keeps=True, keys=0),
    "near_uniform": _near("10,000 keys, uniform, within a slot, undeclared", "transfer", 10_000),
    "local_uniform": _near("10,000 keys, uniform, within a slot, local", "move", 10_000),
    "near_hot": _near("100 hot keys, within a slot, undeclared", "transfer", 100),
    "local_hot": _near("100 hot keys, within a slot, local", "move", 100),
    "number_as_argument": _travelling("as_argument"),
    "number_as_key": _travelling("as_key"),
    "number_for_a_result": _travelling("for_a_result"),
    "number_along_a_chain": _travelling("along_a_chain"),
    "tpcc_local": _tpcc(LOCAL),
    "tpcc_ordinary": _tpcc(ORDINARY),
    **{name: _on_carts(load) for name, load in carts.LOADS.items()},
    **{name: _on_orders(load) for name, load in orders.LOADS.items()},
    **{name: _emitting(load) for name, load in emitting.LOADS.items()},
    **{name: _reacting(load) for name, load in reacting.LOADS.items()},
}
"""By the name that the commands take."""
ALL_AT_ONCE: Final = 10**9
"""More requests than any row has."""
DEFAULT_ROWS: Final = ("uniform", "hot")
"""The rows of a command that is told none."""


def add_rows(parser: argparse.ArgumentParser) -> None:
    """Adds the names of rows to a command, and how many requests arrive together."""
    parser.add_argument(
        "rows",
        nargs="*",
        default=list(DEFAULT_ROWS),
        metavar="ROW",
        type=_row,
        help=f"of {', '.join(ROWS)} (default: {' '.join(DEFAULT_ROWS)})",
    )
    parser.add_argument(
        "--at-once",
        type=_positive,
        default=ALL_AT_ONCE,
        metavar="N",
        help="requests that arrive together, behind the replies to those before them (default: all). In rows with a "
        "bare loop all requests arrive together",
    )


def run_row(engine: EngineLoop, routed: list[tuple[int, bytes]], at_once: int) -> list[bytes]:
    """The replies to the requests, of which so many at once arrive."""
    replies: list[bytes] = []
    for first in range(0, len(routed), at_once):
        replies += engine.run(routed[first : first + at_once])
    return replies


def _positive(word: str) -> int:
    number = int(word)
    if number < 1:
        raise argparse.ArgumentTypeError(f"it is 1 or more, got {word}")
    return number


def _row(name: str) -> str:
    if name not in ROWS:
        raise argparse.ArgumentTypeError(f"there is no row {name!r}; there are {', '.join(ROWS)}")
    return name
