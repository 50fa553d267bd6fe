"""Versions: which states of earlier epochs can be read, how long, and what they count."""

from __future__ import annotations

from random import Random

import pytest

from styx.state.slot_state import IDEMPOTENCY_TABLE, SlotState
from styx.state.table import Table
from styx.state.versions import IMAGE_BYTES, TableVersions, Versions


def kept(epochs_max: int = 16, bytes_max: int = 1_000_000, oldest: int = 0) -> tuple[Table, Versions]:
    versions = Versions(epochs_max, bytes_max)
    versions.begin(oldest)
    table = Table({"a": b"a0", "b": b"b0"}, 0)
    table.versions = TableVersions(versions)
    return table, versions


def test_a_state_is_read_at_the_end_of_each_epoch() -> None:
    table, _ = kept()
    table.write(1, "a", b"a1")
    table.write(3, "a", None)
    table.write(3, "c", b"c3")
    table.write(4, "a", b"a4")
    assert [table.value_at(epoch, "a") for epoch in range(6)] == [b"a0", b"a1", b"a1", None, b"a4", b"a4"]
    assert [table.value_at(epoch, "c") for epoch in range(4)] == [None, None, None, b"c3"]
    assert [table.value_at(epoch, "b") for epoch in range(4)] == [b"b0"] * 4


def test_the_first_write_of_an_epoch_counts() -> None:
    """The lock phase and phase 3 write what the commit of the same epoch has written before."""
    table, versions = kept()
    table.write(1, "a", b"once")
    table.commit(1, {"a": b"twice", "b": None})
    table.write(1, "b", b"again")
    assert (table.value_at(0, "a"), table.value_at(0, "b")) == (b"a0", b"b0")
    assert (table.value_at(1, "a"), table.value_at(1, "b")) == (b"twice", b"again")
    assert (versions.n_images, versions.n_bytes) == (2, 2 * IMAGE_BYTES + 4)


def test_images_laid_over_the_table_make_the_earlier_state() -> None:
    rng = Random("images")
    table, _ = kept()
    states = {0: {"a": b"a0", "b": b"b0"}}
    for epoch in range(1, 9):
        state = dict(states[epoch - 1])
        for _ in range(rng.randrange(4)):
            key, value = rng.choice("abcd"), rng.choice([b"x", b"y", b"z", None])
            if value is not None:
                state[key] = value
                table.commit(epoch, {key: value})
            elif state.pop(key, None) is not None:
                table.write(epoch, key, None)
        states[epoch] = state
    for epoch, state in states.items():
        over: dict[str, bytes | None] = dict(table.at(9))
        for images in table.images_behind(epoch):
            over.update(images)
        assert {key: value for key, value in over.items() if value is not None} == state
        assert {key: table.value_at(epoch, key) for key in "abcd"} == {key: state.get(key) for key in "abcd"}


def test_only_so_many_epochs_are_kept() -> None:
    table, versions = kept(epochs_max=3)
    for epoch in (1, 2, 5, 6):
        table.write(epoch, "a", b"a%d" % epoch)
    assert (versions.oldest, versions.epochs, versions.dropped) == (1, 3, 0)
    assert [table.value_at(epoch, "a") for epoch in (1, 2, 4, 5, 6)] == [b"a1", b"a2", b"a2", b"a5", b"a6"]


def test_only_so_many_bytes_are_kept_beside_those_of_the_newest_epoch() -> None:
    table, versions = kept(bytes_max=2 * IMAGE_BYTES)
    table.commit(1, {"a": b"x", "b": b"y"})
    assert (versions.oldest, versions.n_bytes) == (0, 2 * IMAGE_BYTES + 4)
    table.write(2, "c", b"z")
    assert (versions.oldest, versions.epochs, versions.dropped, versions.n_bytes) == (1, 1, 1, IMAGE_BYTES)
    table.write(3, "d", b"z")
    assert (versions.oldest, versions.epochs, versions.n_bytes) == (1, 2, 2 * IMAGE_BYTES)


def test_tables_share_the_limits() -> None:
    versions, state = Versions(2, 1_000_000), SlotState()
    state.table("old").write(0, "a", b"a0")
    versions.begin(0)
    state.keep_versions(versions)
    state.table("old").write(1, "a", b"a1")
    state.table("new").write(2, "a", b"b2")
    state.table("new").write(3, "a", b"b3")
    assert versions.oldest == 1
    assert [state.table("old").value_at(epoch, "a") for epoch in (1, 2)] == [b"a1", b"a1"]
    assert [state.table("new").value_at(epoch, "a") for epoch in (1, 2, 3)] == [None, b"b2", b"b3"]


def test_nothing_is_kept_before_it_begins_nor_of_remembered_replies() -> None:
    versions, state = Versions(16, 1_000_000), SlotState()
    state.table("a").write(1, "k", b"v")
    state.table(IDEMPOTENCY_TABLE).write(1, "k", b"v")
    versions.begin(1)
    state.keep_versions(versions)
    state.table(IDEMPOTENCY_TABLE).write(2, "k", b"w")
    assert versions.n_images == 0
    state.table("a").write(2, "k", b"w")
    assert versions.n_images == 1


def test_they_are_void_with_their_generation() -> None:
    versions, state = Versions(16, 1_000_000), SlotState()
    versions.begin(-1)
    state.keep_versions(versions)
    state.table("a").write(0, "k", b"v")
    state.as_stored()
    state.table("a").write(1, "k", b"w")
    assert versions.n_images == 1
    with pytest.raises(AssertionError, match="no versions are kept"):
        state.table("a").value_at(0, "k")
