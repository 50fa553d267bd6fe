"""`python -m benchmarks.micro.instructions`: machine instructions of the engine for one transaction, by valgrind.

Other work on the machine changes the count by at most about a thousandth. Compare only figures of the same interpreter.
Two runs are counted, one of them with more transactions, so that the difference contains no start and no warm-up. To
count another commit, copy this file into its tree.
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

from benchmarks.micro.bank import account, app
from benchmarks.micro.engine_loop import EngineLoop
from benchmarks.reference.transfers import START_BALANCE, encoded, transfers
from styx.native.form import FORM, describe
from styx.values.codec import encode_strict

WORKLOADS: Final = {"uniform": 10_000, "hot": 100}
"""Keys by name, as in `benchmarks.micro`."""
FEW: Final = 2_000
MANY: Final = 7_000
"""Transactions of the two runs."""
_COUNTED: Final = re.compile(r"I +refs: +([\d,]+)")


def run(keys: int, count: int) -> None:
    """Runs `count` transactions. The work before them is the same for every `count`."""
    drawn = transfers(MANY, keys, seed=7)
    routed = [(account.partition_of(d, 4) % 4, data) for (d, _, _), data in zip(drawn, encoded(drawn), strict=True)]
    engine = EngineLoop(app)
    for key in range(keys):
        slot = engine.worker.slots[account.partition_of(key, 4) % 4]
        slot.state.table("account").commit(-1, {key: encode_strict({"balance": START_BALANCE})})
    assert len(engine.run(routed[:count])) == count


def counted(told: str) -> int:
    """The instruction count in cachegrind's output."""
    found = _COUNTED.search(told)
    if found is None:
        raise SystemExit(f"valgrind counted nothing:\n{told}")
    return int(found[1].replace(",", ""))


def instructions(keys: int, count: int) -> int:
    """The instructions of a whole process with this number of transactions."""
    tool = ["valgrind", "--tool=cachegrind", "--cache-sim=no", "--cachegrind-out-file=/dev/null"]
    command = [*tool, sys.executable, "-m", "benchmarks.micro.instructions", "--run", str(keys), str(count)]
    # The same hash seed in all processes, and no bytecode files that only the first process would write.
    environment = {**os.environ, "PYTHONHASHSEED": "0", "PYTHONDONTWRITEBYTECODE": "1"}
    try:
        ended = subprocess.run(
            command, env=environment, cwd=Path(__file__).parents[2], capture_output=True, text=True, check=False
        )
    except FileNotFoundError:
        raise SystemExit("valgrind is not installed: apt-get install valgrind") from None
    return counted(ended.stderr)


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--run", nargs=2, type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.run:
        gc.disable()
        run(*options.run)
        return
    print(f"{describe(FORM)}, CPython {sys.version.split()[0]}")
    for name, keys in WORKLOADS.items():
        each = (instructions(keys, MANY) - instructions(keys, FEW)) / (MANY - FEW)
        print(f"{name}: {each:,.0f} instructions a transaction")


if __name__ == "__main__":
    main()
