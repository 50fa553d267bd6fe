"""Branches of one transaction over rows: the order in which they arrive decides nothing, and what has not collided is
what the serial execution gives.
"""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

import pytest

from styx.relational.index_range import TOP, Group, IndexRange, Position, RowKey, TableIndex
from styx.relational.row_indexes import PrimaryKey
from styx.state.slot_state import SlotState
from styx.state.table import Table
from styx.worker import transaction_rows
from styx.worker.footprint import Footprint, RowCell
from styx.worker.slot import Slot
from tests.plain_form import plain_form
from tests.worker.test_footprint import footprint

ROWS = "cart/items"
CHAINS = [b"", b"\0\0", b"\0\1", b"\0\0\0\0", b"\0\0\0\1", b"\0\1\0\0"]
"""Ids of chains in call-path order, which is the order of the serial execution."""

ROW_NUMBERS = 12

Step = tuple[str, int, int, bool]
"""("put", row, rank, -), ("delete", row, -, -), ("look", row, -, -), whether it is there, or ("scan", lowest rank,
highest rank, membership).
"""
Steps = dict[bytes, list[Step]]
Seen = dict[bytes, list[list[tuple[int, int]]]]


class ByRank(TableIndex):
    """Rows in the order of their ranks, in as many groups as there are shelves. It counts what it is asked."""

    def __init__(self, number: int, shelves: int) -> None:
        super().__init__(ROWS, number, "by rank")
        self.shelves = shelves
        self.asked = 0

    def entry(self, key: RowKey, data: bytes, n_slots: int) -> tuple[Group, Position] | None:
        self.asked += 1
        return (key[0], data[0] % self.shelves), (data[0], key[1])


BY_RANK = [ByRank(1, 1), ByRank(2, 2)]
PRIMARY = PrimaryKey(ROWS, 0, "primary key", 1, (), (), True)


def random_steps(rng: Random) -> Steps:
    """A few steps of some of the chains."""
    steps: Steps = {}
    for chain in CHAINS:
        steps[chain] = []
        for _ in range(rng.choice([0, 0, 1, 1, 2, 3])):
            kind, row, rank = (
                rng.choice(["put", "put", "delete", "scan", "scan", "look", "look"]),
                rng.randrange(ROW_NUMBERS),
                _rank(rng),
            )
            if kind == "scan":
                steps[chain].append((kind, rank, rank + rng.choice([0, 1, 4]), rng.random() < 0.4))
            else:
                steps[chain].append((kind, row, rank, False))
    return steps


def _rank(rng: Random) -> int:
    return rng.randrange(2 * ROW_NUMBERS)


def random_order(rng: Random, steps: Steps) -> list[bytes]:
    """An order of arrival: a chain's steps in their order, and behind all steps of the chains above it."""
    left = {chain: len(each) for chain, each in steps.items() if each}
    order: list[bytes] = []
    while left:
        ready = [chain for chain in left if not any(chain != above and chain.startswith(above) for above in left)]
        chain = rng.choice(ready)
        order.append(chain)
        left[chain] -= 1
        if not left[chain]:
            del left[chain]
    return order


def run(
    steps: Steps, order: Sequence[bytes], rows: dict[int, int], index: ByRank
) -> tuple[Footprint, Seen, dict[int, int]]:
    """The transaction, what each chain's queries gave, and the ranks of the rows that it leaves."""
    made = footprint()
    slot = Slot(0, SlotState({ROWS: Table({("ada", row): bytes([rank]) for row, rank in rows.items()}, -1)}), -1)
    made.here = slot
    entity = slot.cell(made, "cart", "ada")
    seen: Seen = {chain: [] for chain in CHAINS}
    ahead = {chain: list(each) for chain, each in steps.items()}
    for chain in order:
        kind, a, b, membership = ahead[chain].pop(0)
        if kind == "scan":
            wanted = IndexRange(index, ("ada", a % index.shelves), (a,), (b + 1,), membership)
            seen[chain].append(
                [(key[1], 0 if membership else data[0]) for key, data in entity.scan(made, wanted, chain)]
            )
        elif kind == "look":
            seen[chain].append([(a, 0)] if entity.has(made, PRIMARY, ("ada",), (a,), chain) else [])
        else:
            slot.cell(made, ROWS, ("ada", a)).write(chain, bytes([b]) if kind == "put" else None)
    left = dict(rows)
    for cell in slot.cells[ROWS].values():
        assert isinstance(cell, RowCell)
        if cell.written and not made.collided:
            value = cell.final_value()
            left.pop(cell.key[1], None)
            if value is not None:
                left[cell.key[1]] = value[0]
    return made, seen, left


def serially(steps: Steps, rows: dict[int, int], index: ByRank) -> tuple[Seen, dict[int, int]]:
    """One chain after the other, on a dictionary."""
    left, seen = dict(rows), Seen()
    for chain in CHAINS:
        seen[chain] = []
        for kind, a, b, membership in steps[chain]:
            if kind == "put":
                left[a] = b
            elif kind == "delete":
                left.pop(a, None)
            elif kind == "look":
                seen[chain].append([(a, 0)] if a in left else [])
            else:
                found = sorted(
                    (rank, row) for row, rank in left.items() if a <= rank <= b and (rank - a) % index.shelves == 0
                )
                seen[chain].append([(row, 0 if membership else rank) for rank, row in found])
    return seen, left


@pytest.mark.parametrize("index", BY_RANK, ids=lambda index: f"{index.shelves} shelves")
@pytest.mark.parametrize("first", range(0, 600, 200))
def test_arrival_decides_nothing_and_what_has_not_collided_is_serial(first: int, index: ByRank) -> None:
    collided = 0
    for seed in range(first, first + 200):
        rng = Random(seed)
        rows = {row: _rank(rng) for row in range(ROW_NUMBERS) if rng.random() < 0.6}
        steps = random_steps(rng)
        ends = [run(steps, random_order(rng, steps), rows, index) for _ in range(4)]
        assert len({made.collided for made, _, _ in ends}) == 1, f"seed {seed}: arrival decides who collides"
        if ends[0][0].collided:
            collided += 1
            continue
        expected = serially(steps, rows, index)
        for _, seen, left in ends:
            assert (seen, left) == expected, f"seed {seed}"
    assert 20 < collided < 180


def test_a_chain_that_looks_again_has_read_one_range_and_sees_what_has_changed() -> None:
    made = footprint()
    slot = made.here = Slot(0, SlotState({ROWS: Table({("ada", 1): b"1"}, -1)}), -1)
    entity, row = slot.cell(made, "cart", "ada"), slot.cell(made, ROWS, ("ada", 1))

    def look(number: int, chain: bytes = b"") -> bool:
        return entity.has(made, PRIMARY, ("ada",), (number,), chain)

    assert look(1)
    row.write(b"", None)
    assert not look(1)
    row.write(b"", b"2")
    assert look(1)
    assert not look(2)
    assert look(1, b"\0\0")
    assert made.rows is not None
    read = [(chain, wanted.low, wanted.high, wanted.membership) for chain, wanted in made.rows.ranges]
    assert read == [
        (b"", (1,), (1, TOP), True),
        (b"", (2,), (2, TOP), True),
        (b"\0\0", (1,), (1, TOP), True),
    ]
    assert slot.querying == [made]


def test_many_branches_on_entities_of_their_own_look_at_their_own_rows_only() -> None:
    index, branches = ByRank(1, 1), 200
    made = footprint()
    slot = made.here = Slot(0, SlotState({ROWS: Table({}, -1)}), -1)
    entity = slot.cell(made, "cart", "ada")
    for number in range(branches):
        chain = number.to_bytes(2, "big")
        for rank in (1, 2):
            assert len(entity.scan(made, IndexRange(index, (number, 0)), chain)) == rank - 1
            slot.cell(made, ROWS, (number, rank)).write(chain, bytes([rank]))
    assert not made.collided
    assert index.asked < 20 * branches


@plain_form
@pytest.mark.parametrize("reads_first", [True, False])
def test_branches_that_crowd_one_group_count_as_collided_in_either_order(
    reads_first: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transaction_rows, "PAIRS_MAX", 24)
    index = ByRank(1, 1)

    def collides(branches: int) -> bool:
        made = footprint()
        slot = made.here = Slot(0, SlotState({ROWS: Table({}, -1)}), -1)
        entity = slot.cell(made, "cart", "ada")

        def read(number: int) -> None:
            entity.scan(made, IndexRange(index, (1, 0), (200 + number,), (201 + number,)), number.to_bytes(2, "big"))

        def write(number: int) -> None:
            slot.cell(made, ROWS, (1, number)).write(number.to_bytes(2, "big"), bytes([number]))

        for step in (read, write) if reads_first else (write, read):
            for number in range(branches):
                step(number)
        return made.collided

    assert not collides(4)
    assert collides(5)
