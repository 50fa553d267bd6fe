"""`python -m benchmarks.deathstar.movie`: `run`, `search`, `load`, `audit` and `plot` are the driver's."""

from __future__ import annotations

import sys

from benchmarks.deathstar.movie.options import add_options, make_workload
from benchmarks.driver.command import main

if __name__ == "__main__":
    sys.exit(main("deathstar.movie", add_options, make_workload))
