"""The command line, with workers that overlook all conflicts between transactions; the judge must see that."""

from __future__ import annotations

import sys
from collections.abc import Container

from styx.cli import main
from styx.worker import validation
from styx.worker.slot import Slot


def no_conflicts(slot: Slot, gone: Container[int]) -> list[int]:
    return []


if __name__ == "__main__":
    validation.conflicts = no_conflicts
    sys.exit(main())
