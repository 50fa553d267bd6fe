"""An access to many entities at once, by the one kind that there is."""

from __future__ import annotations

from styx.model.bulk_load import BulkLoad
from styx.model.partitioning import Key


def test_a_load_overlaps_what_it_writes() -> None:
    load = BulkLoad("account", {"a": b"1", "b": b"2"}, replace=False)
    assert [load.overlaps(key) for key in ("a", "b", "c")] == [True, True, False]


def test_a_load_gives_the_first_key_that_has_a_state() -> None:
    state: dict[Key, bytes] = {"b": b"old", "c": b"old"}
    writes: dict[Key, bytes] = {"a": b"1", "c": b"2", "b": b"3"}
    assert BulkLoad("account", writes, replace=False).result(state.get) == "c"
    assert BulkLoad("account", writes, replace=True).result(state.get) is None
    assert BulkLoad("account", {"a": b"1"}, replace=False).result(state.get) is None
