"""What a view's rows were before later epochs, by entity: the same as a look at all that was written, and no more."""

from __future__ import annotations

from random import Random

from styx.state.slot_state import SlotState
from styx.state.table import Table
from styx.state.versions import Images, Versions
from styx.worker.epoch_view import Overwritten


def looked_through(images: list[Images], parts: int, entity: tuple[object, ...]) -> dict[object, bytes | None]:
    """Of each row of the entity, what it was before the oldest of these epochs that has written it."""
    found: dict[object, bytes | None] = {}
    for epoch in images:
        found.update((key, before) for key, before in epoch.items() if key[:parts] == entity)
    return found


def kept() -> Table:
    versions, state = Versions(100, 1_000_000), SlotState()
    versions.begin(0)
    state.keep_versions(versions)
    return state.table("items")


def test_rows_are_those_of_the_oldest_epoch_that_has_written_them() -> None:
    rng = Random("overwritten")
    for _ in range(50):
        table, parts = kept(), rng.randrange(3)
        view = rng.randrange(4)
        known, epoch = Overwritten(parts), 1
        for _ in range(40):
            key = (rng.randrange(2), rng.randrange(2), rng.randrange(3))
            table.write(epoch, key, b"%d" % rng.randrange(100))
            epoch += rng.random() < 0.2
            if rng.random() < 0.3:  # a query comes between the writes of an open epoch as well
                images = table.images_behind(view)
                known.take(images)
                for entity in {key[:parts] for key in table.at(epoch)}:
                    assert known.by_entity.get(entity, {}) == looked_through(images, parts, entity)


def test_what_was_taken_is_not_looked_at_again() -> None:
    class Counted(Images):
        looks = 0

        def __iter__(self) -> object:  # type: ignore[override]
            Counted.looks += 1
            return super().__iter__()

    images = Counted({("a", number): b"x" for number in range(5)})
    known = Overwritten(1)
    for _ in range(3):
        known.take([images])
    assert Counted.looks == 1
    images["b", 0] = None
    known.take([images])
    assert (Counted.looks, known.by_entity[("b",)]) == (2, {("b", 0): None})
