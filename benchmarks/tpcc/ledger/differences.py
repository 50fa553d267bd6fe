"""The differences between a row and the expected row, as texts."""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks.tpcc.tables import Row


def differences(what: str, found: Row | None, expected: Row) -> Iterator[str]:
    """A text that begins with `what`, its rule and key, for each column; one if there is no row."""
    if found is None:
        yield f"{what} is missing"
    elif found != expected:
        for name in expected.__struct_fields__:
            has, should = getattr(found, name), getattr(expected, name)
            if has != should:
                yield f"{what} has {name} {has!r} rather than {should!r}"
