"""The process that `test_kill` kills: an engine under load that says what it was told, one line a reply, at once.

Arguments: data directory, seed, seconds between snapshots. Prints `starting`, then `ready`, then the replies.
"""

from __future__ import annotations

import asyncio
import os
import random
import sys

import styx
from tests.embedded.ledger_app import app

IN_FLIGHT = 100
KEYS = 20


def say(text: str) -> None:
    # Straight into the pipe, where it survives the process.
    os.write(1, f"{text}\n".encode())


async def _send(client: styx.client.embedded.EmbeddedClient, rng: random.Random) -> None:
    while True:
        key, to, amount = f"k{rng.randrange(KEYS)}", f"k{rng.randrange(KEYS)}", rng.randrange(10)
        if rng.random() < 0.5:
            reply = await client.request("ledger", key, "add", amount)
        else:
            reply = await client.request("ledger", key, "move", to, amount)
        outcome = reply.result if reply.error is None else reply.error.code
        say(f"{reply.request_id} {reply.epoch} {reply.phase} {reply.tid} {outcome}")


async def main(data_dir: str, seed: int, snapshot_interval: float) -> None:
    say("starting")
    async with styx.embedded(app, data_dir, snapshot_interval=snapshot_interval, keep_log=True) as client:
        say("ready")
        rng = random.Random(seed)
        await asyncio.gather(*[_send(client, rng) for _ in range(IN_FLIGHT)])


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], int(sys.argv[2]), float(sys.argv[3])))
