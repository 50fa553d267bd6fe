"""The process that serves the app by HTTP, with an engine of its own: `python -m benchmarks.read_anomalies.server
VERSIONS DIRECTORY ADDRESS`.

It writes its URL into the file ADDRESS when it serves, and ends with its parent. How many versions it keeps is what the
command varies; no option of `styx dev` says it.
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import styx
from benchmarks.read_anomalies.app import app
from styx.gateway.server import serve
from styx.model.limits import Limits


async def _serve(versions: int, directory: Path, address: Path) -> None:
    async with styx.embedded(app, directory, limits=Limits(versions_max=versions)) as client:

        def started(url: str) -> None:
            unfinished = address.with_suffix(".new")
            unfinished.write_text(url)
            unfinished.rename(address)

        await serve(client.engine, port=0, on_started=started)


if __name__ == "__main__":
    asyncio.run(_serve(int(sys.argv[1]), Path(sys.argv[2]), Path(sys.argv[3])))
