"""What a load fetches: one piece of each object, the oldest first, and no more than its slots need."""

from __future__ import annotations

import pytest

from styx.protocol.manifest import Manifest, ObjectRef, SlotManifest, SlotPart
from styx.snapshot.part import object_name
from styx.snapshot.spans import Span, spans

OLD, MIDDLE, NEW = (object_name(0, generation, epoch, 0) for generation, epoch in ((1, 5), (1, 7), (2, 30)))


def part(name: str, start: int, size: int) -> ObjectRef:
    return ObjectRef(name, size, b"", start)


def manifest(*chains: list[ObjectRef]) -> Manifest:
    parts = [SlotPart(slot, 0, [], 0, {}, None) for slot in range(len(chains))]
    return Manifest(2, 30, 1, [SlotManifest(each, chain) for each, chain in zip(parts, chains, strict=True)])


def test_parts_of_several_slots_are_fetched_at_once() -> None:
    first, second, third = part(OLD, 0, 10), part(OLD, 10, 5), part(OLD, 15, 20)
    whole = manifest([first], [second], [third])
    assert spans(whole, [0, 1, 2]) == [Span(OLD, 0, 35, [(0, first), (1, second), (2, third)])]
    assert spans(whole, [1, 2]) == [Span(OLD, 10, 25, [(1, second), (2, third)])]
    assert spans(whole, [1]) == [Span(OLD, 10, 5, [(1, second)])]


def test_objects_come_in_the_order_in_which_they_were_written() -> None:
    whole = manifest([part(NEW, 0, 1)], [part(OLD, 0, 1), part(NEW, 1, 1)], [], [part(OLD, 1, 1), part(MIDDLE, 0, 1)])
    assert [span.name for span in spans(whole, [0, 1, 2, 3])] == [OLD, MIDDLE, NEW]
    assert spans(whole, [2]) == []


def test_without_a_snapshot_there_is_nothing_to_fetch() -> None:
    assert spans(None, [0]) == []


def test_a_chain_in_another_order_is_a_mistake() -> None:
    with pytest.raises(AssertionError, match="not in the order"):
        spans(manifest([part(NEW, 0, 1), part(OLD, 0, 1)]), [0])
