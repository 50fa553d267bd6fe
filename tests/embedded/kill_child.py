"""The process that `test_kill` kills: an engine under load that says what it was told, one line a reply, at once.

One request in twenty calls a function outside, which notes its idempotency key in a file. Arguments: data directory,
seed, seconds between snapshots. Prints `starting`, then `ready`, then the replies.
"""

from __future__ import annotations

import asyncio
import os
import random
import sys
from pathlib import Path

import styx
from styx.client.embedded import EmbeddedClient
from tests.embedded.ledger_app import app, note, note_into, outside

IN_FLIGHT = 100
KEYS = 20
NOTES_NAME = "notes"


def say(text: str) -> None:
    # Straight into the pipe, where it survives the process.
    os.write(1, f"{text}\n".encode())


async def _send(client: EmbeddedClient, rng: random.Random) -> None:
    while True:
        key, to, amount = f"k{rng.randrange(KEYS)}", f"k{rng.randrange(KEYS)}", rng.randrange(10)
        choice = rng.random()
        if choice < 0.05:
            reply = await client.request("ledger", key, "call_outside", "note", amount)
        elif choice < 0.5:
            reply = await client.request("ledger", key, "add", amount)
        else:
            reply = await client.request("ledger", key, "move", to, amount)
        outcome = reply.result if reply.error is None else reply.error.code
        say(f"{reply.request_id} {reply.epoch} {reply.phase} {reply.tid} {outcome}")


async def main(data_dir: str, seed: int, snapshot_interval: float) -> None:
    outside["note"] = note
    note_into(Path(data_dir) / NOTES_NAME)
    say("starting")
    async with styx.embedded(app, data_dir, snapshot_interval=snapshot_interval, keep_log=True) as client:
        say("ready")
        rng = random.Random(seed)
        await asyncio.gather(*[_send(client, rng) for _ in range(IN_FLIGHT)])


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], int(sys.argv[2]), float(sys.argv[3])))
