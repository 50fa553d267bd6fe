"""A row that a transaction adds to, in the execution step: against the serial execution of the same steps, in every
order of arrival.
"""

from __future__ import annotations

from itertools import permutations
from random import Random

import msgspec
import pytest

from styx.model.context import PATH_STEP_BYTES
from styx.relational.increment import Increment, incremented
from styx.relational.index_range import HIGHEST, LOWEST, Group, IndexRange, Position, RowKey, TableIndex
from styx.relational.row_type import RowType
from styx.state.slot_state import SlotState
from styx.state.table import Table
from styx.worker.footprint import Footprint, RowCell
from styx.worker.incremented_row import AnyRow, IncrementedRow
from styx.worker.slot import Slot
from tests.plain_form import plain_form
from tests.worker.test_footprint import footprint

ROWS = "cart/items"
KEY: RowKey = ("ada", 1)


class Row(msgspec.Struct):
    n: int
    x: float = 0.0


TYPE = RowType(ROWS, Row)
ZERO = TYPE.encode(Row(0))


class ByKey(TableIndex):
    """The primary key."""

    def entry(self, key: RowKey, data: bytes, n_slots: int) -> tuple[Group, Position] | None:
        return key[:1], (key[1],)


ALL = IndexRange(ByKey(ROWS, 0, "primary key"), ("ada",), LOWEST, HIGHEST)
MEMBERS = IndexRange(ByKey(ROWS, 0, "primary key"), ("ada",), LOWEST, HIGHEST, True)


def path(chain: str) -> bytes:
    return b"".join(int(step).to_bytes(PATH_STEP_BYTES, "big") for step in chain)


class Transaction:
    """One transaction and one row of a slot, with text for chains and numbers for rows."""

    def __init__(self, committed: int | None = 10) -> None:
        self.footprint: Footprint = footprint()
        rows = {} if committed is None else {KEY: TYPE.encode(Row(committed))}
        self.slot = Slot(0, SlotState({ROWS: Table(rows, -1)}), -1)
        self.footprint.here = self.slot

    @property
    def cell(self) -> AnyRow:
        cell = self.slot.cell(self.footprint, ROWS, KEY)
        assert isinstance(cell, RowCell | IncrementedRow)
        return cell

    def read(self, chain: str) -> int | None:
        data = self.cell.read(path(chain))
        return None if data is None else TYPE.decode(data).n

    def write(self, chain: str, n: int | None) -> None:
        self.cell.write(path(chain), None if n is None else TYPE.encode(Row(n)))

    def add(self, chain: str, n: int, zero: bytes | None = None) -> bool:
        return self.cell.add(path(chain), Increment(TYPE, {"n": n}, zero, None if zero is None else "n"))

    def scan(self, chain: str) -> list[int]:
        return [TYPE.decode(data).n for _, data in self.cell.scan(self.footprint, ALL, path(chain))]

    def count(self, chain: str) -> int:
        return self.cell.count(self.footprint, MEMBERS, path(chain))

    def has(self, chain: str) -> bool:
        return self.cell.has(self.footprint, MEMBERS.index, KEY[:1], KEY[1:], path(chain))

    def final(self) -> int | None:
        """What the row is after a commit of this transaction alone."""
        cell = self.cell
        if isinstance(cell, IncrementedRow) and not cell.written:
            data = incremented(cell.found(KEY), cell.pending())
        else:
            data = cell.final_value() if cell.written else cell.found(KEY)
        return None if data is None else TYPE.decode(data).n

    @property
    def collided(self) -> bool:
        return self.footprint.collided


def test_who_only_adds_touches_nothing() -> None:
    row = Transaction()
    assert row.add("", 1)
    assert row.cell.chain is None
    assert not row.cell.written
    assert row.final() == 11


def test_own_increments_are_seen_and_that_is_a_read() -> None:
    row = Transaction()
    row.add("", 1)
    assert row.read("") == 11
    row.add("", 2)
    assert row.read("") == 13
    assert row.read("01") == 13
    assert row.cell.chain is not None
    assert row.final() == 13


def test_increments_and_writes_of_one_chain_count_in_their_order() -> None:
    row = Transaction()
    row.add("", 1)
    row.write("", 20)
    row.add("", 2)
    assert (row.read(""), row.final()) == (22, 22)
    row.write("", None)
    assert (row.add("", 1), row.read(""), row.final()) == (False, None, None)
    row.write("", 5)
    row.add("0", 1)
    row.add("1", 1)
    assert (row.read(""), row.read("0"), row.final(), row.collided) == (5, 6, 7, True)


def test_branches_that_add_do_not_collide_and_do_not_see_each_other() -> None:
    row = Transaction()
    row.add("", 1)
    row.add("0", 2)
    row.add("1", 4)
    assert not row.collided
    assert row.final() == 17
    assert row.read("0") == 13
    assert row.collided


@pytest.mark.parametrize("arrival", list(permutations(["", "00", "01", "1"])))
def test_branches_are_added_up_in_call_path_order_whenever_they_arrive(arrival: tuple[str, ...]) -> None:
    row, weights = Transaction(), {"": 1.0, "00": 1e-16, "01": -1.0, "1": 1e-16}
    for chain in arrival:
        row.cell.add(path(chain), Increment(TYPE, {"x": weights[chain]}))
    cell = row.cell
    assert isinstance(cell, IncrementedRow)
    data = incremented(cell.found(KEY), cell.pending())
    assert data is not None
    assert TYPE.decode(data).x == 1e-16, "the first small one is lost beside 1.0"


@pytest.mark.parametrize("other", ["read", "put", "delete", "scan"])
@pytest.mark.parametrize("add_first", [True, False])
def test_a_branch_that_adds_collides_with_one_that_does_anything_else(other: str, add_first: bool) -> None:
    row = Transaction()
    if add_first:
        row.add("0", 1)
    if other == "read":
        assert row.read("1") == 10
    elif other == "scan":
        assert row.scan("1") == [10]
    else:
        row.write("1", 3 if other == "put" else None)
    if not add_first:
        row.add("0", 1)
    assert row.collided


@pytest.mark.parametrize("add_first", [True, False])
def test_the_membership_minds_an_increment_only_if_the_row_can_come_and_go(add_first: bool) -> None:
    for zero in (None, ZERO):
        row = Transaction()
        if add_first:
            row.add("0", 1, zero)
        assert row.count("1") == 1
        if not add_first:
            row.add("0", 1, zero)
        assert row.collided == (zero is not None)


def test_a_missing_row_is_read_by_who_wants_to_add_to_it() -> None:
    row = Transaction(None)
    assert not row.add("0", 1)
    assert row.cell.chain is not None
    assert row.final() is None
    row.write("1", 1)
    assert row.collided


def test_a_row_of_a_view_comes_and_goes() -> None:
    row = Transaction(None)
    assert row.add("0", 1, ZERO)
    assert (row.scan("0"), row.final()) == ([1], 1)
    row.add("0", -1, ZERO)
    assert (row.scan("0"), row.final(), row.count("0")) == ([], None, 0)


def test_a_query_sees_what_its_chain_has_added() -> None:
    row = Transaction()
    row.add("", 1)
    assert row.scan("") == [11]
    row.add("", 1)
    assert row.scan("01") == [12]


class Serial:
    """The obvious model: one row, the steps in the order of the serial execution."""

    def __init__(self, committed: int | None) -> None:
        self.n = committed

    def do(self, step: tuple[str, int], zero: bytes | None) -> int | bool | None:
        kind, n = step
        if kind == "read":
            return self.n
        if kind == "look":
            return self.n is not None
        if kind in ("put", "delete"):
            self.n = n if kind == "put" else None
            return None
        if self.n is None and zero is None:
            return False
        self.n = (self.n or 0) + n
        if zero is not None and self.n == 0:
            self.n = None
        return True


def run(row: Transaction, chain: str, step: tuple[str, int], zero: bytes | None) -> int | bool | None:
    kind, n = step
    if kind == "read":
        return row.read(chain)
    if kind == "look":
        return row.has(chain)
    if kind in ("put", "delete"):
        row.write(chain, n if kind == "put" else None)
        return None
    return row.add(chain, n, zero)


@pytest.mark.parametrize("zero", [None, ZERO])
def test_random_steps_of_branches_are_serial_or_collide_in_every_order_of_arrival(zero: bytes | None) -> None:
    serial, collided = 0, 0
    for seed in range(500):
        random = Random(seed)
        committed = random.choice([None, 1, 10])
        kinds = random.choice([["add"], ["add", "add", "add", "read", "put", "delete", "look"]])
        programs = {
            chain: [(random.choice(kinds), random.choice([-1, 1, 2])) for _ in range(random.randrange(3))]
            for chain in ["", "0", "00", "01", "1"]
        }
        model = Serial(committed)
        expected = {chain: [model.do(step, zero) for step in programs[chain]] for chain in sorted(programs)}
        outcomes, row = set(), Transaction(committed)
        for _ in range(3):
            row, got = Transaction(committed), {chain: list[int | bool | None]() for chain in programs}
            for chain in _arrival(random, programs):
                got[chain].append(run(row, chain, programs[chain][len(got[chain])], zero))
            outcomes.add((row.collided, str(got)))
            if not row.collided:
                assert got == expected, seed
                assert row.final() == model.n, seed
        assert len(outcomes) == 1, f"seed {seed}: the order of arrival decides"
        serial, collided = serial + (not row.collided), collided + row.collided
    assert min(serial, collided) > 60


def _arrival(random: Random, programs: dict[str, list[tuple[str, int]]]) -> list[str]:
    """The steps' chains in an order that can be: a chain begins behind the ends of those above it."""
    left = {chain: len(steps) for chain, steps in programs.items()}
    order: list[str] = []
    while any(left.values()):
        ready = [
            chain
            for chain, n in left.items()
            if n and not any(left[other] for other in left if other != chain and chain.startswith(other))
        ]
        order.append(random.choice(ready))
        left[order[-1]] -= 1
    return order


def test_what_is_added_is_summed_when_a_query_looks() -> None:
    row = Transaction()
    assert row.scan("") == [10]
    for _ in range(3):
        row.add("", 1)
    assert isinstance(row.cell, IncrementedRow)
    assert not row.cell.sums
    assert row.scan("") == [13]


@plain_form
def test_looking_again_and_again_costs_no_sum_of_all_increments(monkeypatch: pytest.MonkeyPatch) -> None:
    added = 0
    original = Increment.add_to

    def counted(self: Increment, data: object) -> None:
        nonlocal added
        added += 1
        original(self, data)

    monkeypatch.setattr(Increment, "add_to", counted)
    row = Transaction()
    row.scan("")
    for number in range(200):
        row.add("", 1)
        assert row.read("") == 11 + number
        assert row.scan("") == [11 + number]
    assert row.read("0") == 210
    assert added == 200
