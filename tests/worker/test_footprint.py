"""What a branch of a transaction sees in the execution step, and when two branches collide.

A chain is named by the path of its outermost function: "" is the root's, "0" its first call's, "00" that one's first
call's. A chain sees itself and the chains above it.
"""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from styx.model.limits import Limits
from styx.native.compiled import transaction_limits
from styx.state.table import Table
from styx.worker.chains import SEQUENTIAL_CHAIN
from styx.worker.footprint import EntityCell, Footprint
from tests.protocol.scripted_app import app
from tests.worker.execution import Execution

chains = st.text("01", max_size=3)


def footprint(slot: int = 0, root_slot: int = 0, timestamp_us: int = 0) -> Footprint:
    return Footprint(app, transaction_limits(Limits()), 4, 1, timestamp_us, slot, root_slot, False, False, None)


class Entity:
    """An entity's cell with text for chains and values."""

    def __init__(self, committed: str | None = "committed") -> None:
        self.footprint = footprint()
        table = {} if committed is None else {"key": committed.encode()}
        self.cell = EntityCell(self.footprint, "key", Table(table, -1).reader(-1))

    def read(self, chain: str) -> str | None:
        seen = self.cell.read(_path(chain))
        return None if seen is None else seen.decode()

    def write(self, chain: str, value: str | None) -> None:
        self.cell.write(_path(chain), None if value is None else value.encode())

    @property
    def collided(self) -> bool:
        return self.footprint.collided


def _path(chain: str) -> bytes:
    return b"".join(int(step).to_bytes(2, "big") for step in chain)


def test_the_time_is_that_of_the_request_and_made_once() -> None:
    one, other = footprint(timestamp_us=1_000_001), footprint(timestamp_us=2_000_000)
    assert one.now() == datetime(1970, 1, 1, 0, 0, 1, 1, tzinfo=UTC)
    assert other.now() == datetime(1970, 1, 1, 0, 0, 2, tzinfo=UTC)
    assert one.now() is one.now()
    assert one.now().tzinfo is UTC


def test_without_writes_everyone_sees_the_committed_state() -> None:
    assert [Entity().read(chain) for chain in ("", "0", "01")] == ["committed"] * 3
    assert Entity(committed=None).read("") is None


def test_a_chain_sees_its_own_writes() -> None:
    entity = Entity()
    entity.write("0", "a")
    assert entity.read("0") == "a"
    entity.write("0", "b")
    assert entity.read("0") == "b"


def test_a_chain_sees_the_nearest_write_above_it() -> None:
    entity = Entity()
    entity.write("", "root")
    entity.write("0", "call")
    assert entity.read("01") == "call"
    assert entity.read("1") == "root"


def test_a_deletion_is_a_write() -> None:
    entity = Entity()
    entity.write("", None)
    assert entity.read("0") is None


def test_nobody_sees_below_or_beside() -> None:
    entity = Entity()
    entity.write("00", "below")
    assert entity.read("0") == "committed"
    assert entity.read("1") == "committed"


def test_a_longer_index_is_no_child() -> None:
    # Paths have two bytes a step: call 0x0100 is not below call 1, although their texts begin alike.
    entity = Entity()
    entity.cell.write((1).to_bytes(2, "big"), b"one")
    assert entity.cell.read((0x0100).to_bytes(2, "big")) == b"committed"


# Collisions ----------------------------------------------------------------------------------------------------


def test_readers_do_not_collide() -> None:
    entity = Entity()
    for chain in ("0", "1", "00"):
        entity.read(chain)
    assert not entity.collided


@pytest.mark.parametrize("first", ["read", "write"])
@pytest.mark.parametrize("second", ["read", "write"])
def test_branches_collide_if_one_of_them_writes(first: str, second: str) -> None:
    entity = Entity()
    for act, chain in ((first, "0"), (second, "1")):
        entity.read(chain) if act == "read" else entity.write(chain, chain)
    assert entity.collided == ("write" in (first, second))


@pytest.mark.parametrize("chain", ["0", "01"])
def test_a_line_of_calls_does_not_collide(chain: str) -> None:
    entity = Entity()
    entity.write("", "above")
    entity.read(chain)
    entity.write(chain, "below")
    entity.write("", "after the call was made")
    assert not entity.collided


@given(st.permutations(["read", "write", "read"]), st.permutations(["", "0", "1"]))
def test_a_collision_does_not_depend_on_the_order_of_arrival(acts: list[str], order: list[str]) -> None:
    by_chain = dict(zip(["", "0", "1"], acts, strict=True))
    entity = Entity()
    for chain in order:
        entity.read(chain) if by_chain[chain] == "read" else entity.write(chain, chain)
    assert entity.collided == ("write" in (by_chain["0"], by_chain["1"]))


@given(st.lists(st.tuples(st.booleans(), chains), max_size=8))
def test_collisions_are_those_of_the_obvious_rule(acts: list[tuple[bool, str]]) -> None:
    entity = Entity()
    for writes, chain in acts:
        entity.write(chain, chain) if writes else entity.read(chain)
    expected = any(
        (writes_a or writes_b) and not a.startswith(b) and not b.startswith(a)
        for writes_a, a in acts
        for writes_b, b in acts
    )
    assert entity.collided == expected


@given(st.lists(st.tuples(chains, st.none() | st.text(max_size=2)), min_size=1, max_size=8))
def test_without_a_collision_the_lowest_write_is_the_last(acts: list[tuple[str, str | None]]) -> None:
    entity = Entity()
    latest: dict[str, str | None] = {}
    for chain, value in acts:
        entity.write(chain, value)
        latest[chain] = value
    if not entity.collided:
        final = entity.cell.final_value()
        assert (None if final is None else final.decode()) == latest[max(latest, key=len)]


def test_in_sequence_every_branch_sees_everything_before_it() -> None:
    entity = Entity()
    entity.cell.write(SEQUENTIAL_CHAIN, b"one")
    assert entity.cell.read(SEQUENTIAL_CHAIN) == b"one"
    entity.cell.write(SEQUENTIAL_CHAIN, b"two")
    assert entity.cell.final_value() == b"two"
    assert not entity.collided


# Whose end is decided here alone -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("script", "spread"),
    [
        ("add 1", False),
        ("send b0 (add 1)", False),
        ("ask b0 (add 1)", False),
        ("send b1 (add 1)", True),
        ("ask b1 (get)", True),
        ("send b0 (send c1 (get))", True),
    ],
)
def test_a_transaction_is_spread_if_another_slot_takes_part(script: str, spread: bool) -> None:
    execution = Execution(2)
    execution.run({1: ("a0", script)})
    assert execution.slots[0].footprints[1].spread == spread


def test_a_transaction_rooted_elsewhere_is_spread() -> None:
    assert footprint(slot=1, root_slot=0).spread
    assert not footprint(slot=1, root_slot=1).spread
