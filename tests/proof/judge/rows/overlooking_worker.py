"""The command line, with workers that do not validate what queries of rows have read; the judge must see that."""

from __future__ import annotations

import sys
from collections.abc import Container, Iterable

from styx.cli import main
from styx.model.access import Access
from styx.worker import validation
from styx.worker.slot import Slot


def no_conflicts_of_ranges(slot: Slot, accesses: Iterable[tuple[int, Access]], gone: Container[int]) -> set[int]:
    return set()


if __name__ == "__main__":
    validation.conflicts_of_ranges = no_conflicts_of_ranges  # type: ignore[attr-defined]
    sys.exit(main())
