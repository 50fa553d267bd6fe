"""A function that blocks one worker of a cluster of real processes in C code, and the cost for other requests.

    python -m proof.cluster.blocking --seconds 60

Small requests before, beside and after it must all be answered, and no worker may be replaced, because a worker that a
function holds up is not dead. With a limit below `--seconds` the function ends with `FunctionTooLong` as soon as it
returns from C code. The exit status is 1 if one of these fails.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import time
from collections.abc import Sequence
from typing import Final, NamedTuple

from proof.cluster.child import ChildFailed
from proof.cluster.cluster import ClusterOptions, ClusterUnderTest
from proof.cluster.services import local_services, working_directory
from styx.cli.facts_client import fetch_status
from styx.client.base import Client
from styx.messages import Reply
from styx.testing.patience import PATIENCE_SECONDS

APP: Final = "proof.cluster.blocking_app:app"
SMALL: Final = 20
"""The numbers of requests before, beside and after the one that blocks."""


class Found(NamedTuple):
    """Times in seconds: of the request that blocks, and of the slowest other request before, beside and after it."""

    blocked: Reply
    blocked_s: float
    before_s: float
    beside_s: float
    behind_s: float
    generations: int


async def block(cluster: ClusterUnderTest, client: Client, seconds: float) -> Found:
    """Calls a function that blocks for `seconds`. Raises `AssertionError` if a small request is not answered."""
    await client.submit("counter", "a", "add", timeout=PATIENCE_SECONDS)
    first = (await asyncio.to_thread(fetch_status, cluster.facts_url)).generation
    before_s = await _small(client, "before")
    began_s = time.monotonic()
    blocking = asyncio.ensure_future(client.submit("counter", "a", "block", seconds, timeout=PATIENCE_SECONDS))
    beside_s = await _small(client, "beside")
    blocked = await blocking
    blocked_s = time.monotonic() - began_s
    behind_s = await _small(client, "behind")
    last = (await asyncio.to_thread(fetch_status, cluster.facts_url)).generation
    return Found(blocked, blocked_s, before_s, beside_s, behind_s, last - first)


async def _small(client: Client, when: str) -> float:
    async def one(key: str) -> float:
        began_s = time.monotonic()
        assert await client.call("counter", key, "add", timeout=PATIENCE_SECONDS) == 1, key
        return time.monotonic() - began_s

    return max(await asyncio.gather(*(one(f"{when} {n}") for n in range(SMALL))))


def main(arguments: Sequence[str] | None = None) -> int:
    """The command; returns the exit status."""
    parser = argparse.ArgumentParser(prog="python -m proof.cluster.blocking", description=__doc__)
    parser.add_argument("--seconds", type=float, default=60.0, help="it blocks for so long (default 60)")
    parser.add_argument("--limit", type=float, default=10.0, help="Limits.function_seconds_max (default 10)")
    parser.add_argument("--workers", type=int, default=2)
    options = parser.parse_args(arguments)
    directory = working_directory("blocking")
    with local_services() as services:
        wanted = ClusterOptions(
            app=APP,
            name="blocking",
            kafka=services.kafka_address,
            store=f"file://{directory}/store",
            directory=directory,
            workers=options.workers,
            function_seconds_max=options.limit,
        )

        async def run() -> Found:
            async with ClusterUnderTest(wanted) as cluster:
                await cluster.start()
                async with cluster.client() as client:
                    return await block(cluster, client, options.seconds)

        try:
            found = asyncio.run(run())
        except (AssertionError, ChildFailed) as failure:
            print(f"FAILED: {failure}")
            return 1
    error = found.blocked.error
    became = "ended" if error is None else f"{error.type}: {error.message}"
    print(
        f"blocked for {options.seconds:g} s, the request took {found.blocked_s:.1f} s and {became}; the slowest of "
        f"{SMALL} small ones took {found.before_s:.2f} s before, {found.beside_s:.1f} s beside and "
        f"{found.behind_s:.2f} s behind it; {found.generations} generations were begun anew"
    )
    return 1 if found.generations else 0


if __name__ == "__main__":
    sys.exit(main())
