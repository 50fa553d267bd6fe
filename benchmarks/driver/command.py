"""The command line of a workload: `run`, `search`, `load`, `audit` and `plot`. Wires the other files together.

A workload's `__main__` is

    if __name__ == "__main__":
        sys.exit(main("ycsbt", add_options, make_workload))
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence

from benchmarks.driver.workload import Workload

AddOptions = Callable[[argparse.ArgumentParser], None]
"""Adds the workload's own options to the parser of each subcommand that needs the workload."""
MakeWorkload = Callable[[argparse.Namespace], Workload]
"""Makes the workload of the parsed options, also in client processes: a function of a module, so that it is picklable.

Raises `styx.errors.ConfigurationError` for options that make no sense.
"""


def main(
    name: str, add_options: AddOptions, make_workload: MakeWorkload, arguments: Sequence[str] | None = None
) -> int:
    """Runs `python -m benchmarks.NAME`; returns the exit status."""
    raise NotImplementedError
