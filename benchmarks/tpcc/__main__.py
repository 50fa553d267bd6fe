"""`python -m benchmarks.tpcc`: the command; `run`, `search`, `load`, `audit` and `plot` are the driver's."""

from __future__ import annotations

import sys

from benchmarks.driver.command import main
from benchmarks.tpcc.options import add_options, make_workload

if __name__ == "__main__":
    sys.exit(main("tpcc", add_options, make_workload))
