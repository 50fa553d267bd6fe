"""`python -m benchmarks.reference bare`: processor time of the bare loop, a lower bound for any engine in Python.

Figures are process CPU time, the median of the runs with the range.
"""

from __future__ import annotations

import argparse
import platform
import statistics
from functools import partial

from benchmarks.reference.bare_loop import bare_loop
from benchmarks.reference.cpu_time import cpu_seconds
from benchmarks.reference.transfers import START_BALANCE, encoded, transfers
from styx.values.codec import decode_plain, encode_strict

CASES = {"10,000 keys, uniform": 10_000, "100 hot keys": 100}


def add_options(parser: argparse.ArgumentParser) -> None:
    """The command's options."""
    parser.add_argument("--transactions", type=int, default=50_000, help="per run (default 50000)")
    parser.add_argument("--runs", type=int, default=5, help="runs of each case (default 5)")


def run(options: argparse.Namespace) -> int:
    """Measures and prints; the exit status."""
    print(f"{platform.python_implementation()} {platform.python_version()}, {platform.machine()}")
    for title, keys in CASES.items():
        figures = bare_us(keys, options.transactions, options.runs)
        print(
            f"{title}: bare loop {statistics.median(figures):.2f} ({min(figures):.2f}-{max(figures):.2f}) µs "
            f"a transaction, at most {1e6 / statistics.median(figures):,.0f} a second on one core"
        )
    return 0


def bare_us(keys: int, count: int, runs: int) -> list[float]:
    """Microseconds of processor time a transaction, run by run, each from the same state. Raises `AssertionError` if
    money was made or lost.
    """
    requests = encoded(transfers(count, keys, seed=7))
    figures = []
    for _ in range(runs):
        state = {key: encode_strict({"balance": START_BALANCE}) for key in range(keys)}
        replies: list[bytes] = []
        seconds = cpu_seconds(partial(_loop, requests, state, replies))
        assert len(replies) == count, "every request has a reply"
        total = sum(decode_plain(value)["balance"] for value in state.values())
        assert total == keys * START_BALANCE, f"{total} instead of {keys * START_BALANCE}"
        figures.append(seconds / count * 1e6)
    return figures


def _loop(requests: list[bytes], state: dict[int, bytes], replies: list[bytes]) -> None:
    replies.extend(bare_loop(requests, state))
