"""`python -m benchmarks.micro.instructions [ROW…]`: machine instructions of the engine for one transaction of each row,
by valgrind.

Other work on the machine changes the count by at most about a thousandth. Compare only figures of the same interpreter.
Two runs are counted, one of them with more transactions, so that the difference contains no start and no warm-up. To
count another commit, copy this file and `rows.py` into its tree.
"""

from __future__ import annotations

import argparse
import gc
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Final

from benchmarks.micro.rows import ALL_AT_ONCE, ROWS, add_rows, run_row
from styx.native.form import FORM, describe

_COUNTED: Final = re.compile(r"I +refs: +([\d,]+)")


def run(name: str, count: int, at_once: int) -> None:
    """Runs `count` transactions of a row. The work before them is the same for every `count` up to the row's `many`."""
    row = ROWS[name]
    routed = row.routed(row.many)
    assert row.answered(run_row(row.engine(), routed[:count], at_once)) == count


def counted(told: str) -> int:
    """The instruction count in cachegrind's output."""
    found = _COUNTED.search(told)
    if found is None:
        raise SystemExit(f"valgrind counted nothing:\n{told}")
    return int(found[1].replace(",", ""))


def instructions(name: str, count: int, at_once: int = ALL_AT_ONCE) -> int:
    """The instructions of a whole process with this number of a row's transactions."""
    tool = ["valgrind", "--tool=cachegrind", "--cache-sim=no", "--cachegrind-out-file=/dev/null"]
    command = [*tool, sys.executable, "-m", "benchmarks.micro.instructions", name, "--run", str(count)]
    command += ["--at-once", str(at_once)]
    # The same hash seed in all processes, and no bytecode files that only the first process would write.
    environment = {**os.environ, "PYTHONHASHSEED": "0", "PYTHONDONTWRITEBYTECODE": "1"}
    try:
        ended = subprocess.run(
            command, env=environment, cwd=Path(__file__).parents[2], capture_output=True, text=True, check=False
        )
    except FileNotFoundError:
        raise SystemExit("valgrind is not installed: apt-get install valgrind") from None
    if ended.returncode:
        # It is the counted process's own status. What a process did before it failed is counted as well.
        raise SystemExit(f"{name} failed under valgrind, with exit status {ended.returncode}:\n{ended.stderr}")
    return counted(ended.stderr)


def per_transaction(name: str, at_once: int = ALL_AT_ONCE) -> float:
    """The instructions of one transaction of a row."""
    few, many = ROWS[name].few, ROWS[name].many
    return (instructions(name, many, at_once) - instructions(name, few, at_once)) / (many - few)


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.micro.instructions", description=__doc__)
    add_rows(parser)
    parser.add_argument("--run", type=int, metavar="COUNT", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.run is not None:
        gc.disable()
        run(options.rows[0], options.run, options.at_once)
        return
    print(f"{describe(FORM)}, CPython {sys.version.split()[0]}")
    for name in options.rows:
        print(f"{name}: {per_transaction(name, options.at_once):,.0f} instructions a transaction", flush=True)


if __name__ == "__main__":
    main()
