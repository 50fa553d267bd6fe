"""`python -m benchmarks.marketplace`: the command; its `run`, `search`, `sweep`, `load`, `audit` and `plot` are the
driver's, and `compare` measures PostgreSQL beside it.

The application reads its settings when it is imported, so they are in the environment before all other imports.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

from benchmarks.marketplace.provider.own import provided
from styx.errors import ConfigurationError


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command; returns the exit status."""
    words = sys.argv[1:] if arguments is None else arguments
    if words[:1] == ["compare"]:
        os.environ.setdefault("MARKETPLACE_PAYMENT", "together")
        from benchmarks.marketplace.comparison.command import main as compare

        return compare(words[1:])
    try:
        with provided(words):
            from benchmarks.driver.command import main as run
            from benchmarks.marketplace.options import add_options, make_workload

            return run("marketplace", add_options, make_workload, words)
    except ConfigurationError as error:
        print(error, file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
