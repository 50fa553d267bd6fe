"""The engine process's main program: serves the bank on a free port until SIGTERM, or until its parent is gone.

python -m styx.cli.demo.engine_main DATA_DIR SNAPSHOT_INTERVAL
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import msgspec

from styx.cli.demo.bank import app
from styx.cli.demo.readiness import Readiness
from styx.cli.engine_facts import Start
from styx.cli.serving import ServingOptions, run_loop, serve_embedded


async def _main(data_dir: Path, snapshot_interval: float) -> None:
    stop = asyncio.Event()
    # A pipe from the parent that nobody writes to: readable only when the parent is gone.
    asyncio.get_running_loop().add_reader(sys.stdin.fileno(), stop.set)

    def on_started(url: str, start: Start) -> None:
        sys.stdout.buffer.write(msgspec.json.encode(Readiness(url, start)) + b"\n")
        sys.stdout.buffer.flush()

    options = ServingOptions("127.0.0.1", 0, data_dir, snapshot_interval, keep_log=True)
    await serve_embedded(app, options, on_started=on_started, on_stopping=lambda: None, stop=stop)


if __name__ == "__main__":
    run_loop(_main(Path(sys.argv[1]), float(sys.argv[2])))
