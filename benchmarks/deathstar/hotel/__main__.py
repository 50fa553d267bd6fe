"""`python -m benchmarks.deathstar.hotel`: the command; `run`, `search`, `load`, `audit` and `plot` are the driver's."""

from __future__ import annotations

import sys

from benchmarks.deathstar.hotel.options import add_options, make_workload
from benchmarks.driver.command import main

if __name__ == "__main__":
    sys.exit(main("deathstar.hotel", add_options, make_workload))
