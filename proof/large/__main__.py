"""The command `python -m proof.large`: runs large cases, one after the other, each on a new engine or cluster.

    python -m proof.large embedded
    python -m proof.large cluster --kafka 127.0.0.1:9092 --case reads --kill

`--kill` kills what runs transactions in the middle, and starts it again. Exit status 1 if a request was not answered as
it must be.
"""

from __future__ import annotations

import argparse
import asyncio
import secrets
import sys
import tempfile
from pathlib import Path

from proof.large.places import on_cluster, on_embedded
from proof.large.run import CASES, Case, Outcome


def shown(case: Case, outcome: Outcome) -> list[str]:
    """The lines about one case."""
    memory = ", ".join(
        f"{name} {outcome.memory_before.get(name, 0)} -> {peak} -> {outcome.memory_after.get(name, 0)}"
        for name, peak in sorted(outcome.memory_peak.items())
    )
    return [
        f"{case.name}: {case.requests} of {case.function}{case.arguments} in {outcome.took_s:.1f} s, "
        f"sent again {outcome.retries or 'none'}",
        f"    meanwhile {outcome.small_answered} small ones, the longest {outcome.small_longest_s:.2f} s",
        f"    MiB before -> at most -> after: {memory}",
        *(f"    WRONG {problem}" for problem in outcome.problems[:5]),
    ]


def main(arguments: list[str] | None = None) -> int:
    """Returns the exit status."""
    parser = argparse.ArgumentParser(prog="python -m proof.large", description=__doc__)
    parser.add_argument("place", choices=["embedded", "cluster"])
    parser.add_argument("--case", action="append", choices=list(CASES), help="which; all of them by default")
    parser.add_argument("--share", type=float, default=1.0, help="a share of the full size, such as 0.1")
    parser.add_argument("--kill", action="store_true", help="kill and start again in the middle")
    parser.add_argument("--kafka", default="127.0.0.1:9092", help="the broker of a cluster")
    options = parser.parse_args(arguments)
    wrong = False
    for name in options.case or CASES:
        case = CASES[name].scaled(options.share)
        directory = Path(tempfile.mkdtemp(prefix="styx-large-"))
        print(f"{name} on {options.place}, logs in {directory}", flush=True)
        if options.place == "embedded":
            run = on_embedded(case, directory, options.kill)
        else:
            run = on_cluster(case, directory, options.kill, options.kafka, f"large-{secrets.token_hex(4)}")
        outcome = asyncio.run(run)
        print(*shown(case, outcome), sep="\n", flush=True)
        wrong = wrong or bool(outcome.problems)
    return int(wrong)


if __name__ == "__main__":
    sys.exit(main())
