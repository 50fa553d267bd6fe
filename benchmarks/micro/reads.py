"""Transfers with reads of the same hot keys between them: the engine with the reads declared as read-only, and without.

Both run the same requests in turn in one process, several times, as the comparison with the bare loop does.
"""

from __future__ import annotations

import random
import statistics
from typing import Final, NamedTuple

from benchmarks.micro.bank import account, app, balance, balance_undeclared
from benchmarks.micro.engine_loop import EngineLoop
from benchmarks.reference.cpu_time import cpu_seconds
from benchmarks.reference.transfers import START_BALANCE, encoded, transfers
from styx.messages import Request, decode_reply, encode_request
from styx.model.signature import NO_ARGUMENTS
from styx.values.codec import encode_strict

KEYS: Final = (2, 100)
SHARES: Final = (0.5, 0.9)
"""Of the requests that are reads."""


class Reads(NamedTuple):
    """CPU time of a transaction in microseconds, and the share of transactions that went through the lock phase."""

    us: float
    locked: float


def requests(keys: int, share: float, count: int, function: str) -> list[tuple[int, bytes]]:
    """(slot, request) pairs; only the `function` that reads differs."""
    rng = random.Random(11)
    routed = []
    drawn = transfers(count, keys, seed=7)
    for number, ((debtor, _, _), data) in enumerate(zip(drawn, encoded(drawn), strict=True)):
        key, request = debtor, data
        if rng.random() < share:
            key = rng.randrange(keys)
            request = encode_request(Request(f"r{number}", "account", key, function, NO_ARGUMENTS))
        routed.append((account.partition_of(key, 4) % 4, request))
    return routed


def run_once(keys: int, routed: list[tuple[int, bytes]]) -> Reads:
    """Runs the requests on a new engine."""
    engine = EngineLoop(app)
    for key in range(keys):
        table = engine.worker.slots[account.partition_of(key, 4) % 4].state.table("account")
        table.commit(-1, {key: encode_strict({"balance": START_BALANCE})})
    given: list[bytes] = []
    seconds = cpu_seconds(lambda: given.extend(engine.run(routed)))
    replies = [decode_reply(data) for data in given]
    assert len(replies) == len(routed)
    assert all(reply.error is None for reply in replies)
    return Reads(seconds / len(routed) * 1e6, sum(reply.phase == 2 for reply in replies) / len(routed))


def measure(keys: int, share: float, count: int, runs: int) -> None:
    """Measures and prints one pair."""
    routed = [requests(keys, share, count, each.__name__) for each in (balance, balance_undeclared)]
    pairs = [[run_once(keys, each) for each in routed] for _ in range(runs)]
    declared, undeclared = ([pair[index] for pair in pairs] for index in range(2))
    ratio = statistics.median(a.us / b.us for a, b in pairs)
    print(
        f"{keys} hot keys, {share:.0%} reads: read-only {_figure(declared)}, undeclared {_figure(undeclared)}, "
        f"ratio {ratio:.2f}"
    )


def _figure(runs: list[Reads]) -> str:
    us = [run.us for run in runs]
    return (
        f"{statistics.median(us):.2f} ({min(us):.2f}-{max(us):.2f}) µs a transaction, {runs[0].locked:.0%} through the "
        "lock phase"
    )
