"""Serves the reservations with their page: `python -m examples.reservations`, then http://127.0.0.1:8000.

The state is kept in `reservations-data`. HOLD_SECONDS is how long an order is held, PORT where it is served.
"""

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import uvicorn
from starlette.applications import Starlette
from starlette.responses import FileResponse
from starlette.routing import Mount, Route

import styx
from examples.reservations.app import app

PAGE = Path(__file__).with_name("page.html")
client = styx.embedded(app, os.environ.get("DATA_DIR", "reservations-data"))


async def page(request: object) -> FileResponse:
    return FileResponse(PAGE)


@asynccontextmanager
async def lifespan(web: Starlette) -> AsyncIterator[None]:
    async with client:
        if client.entity("stock", "chair") is None:  # the first start
            await client.call("stock", "chair", "add", 10)
        yield


web = Starlette(routes=[Route("/", page), Mount("/", styx.asgi(client))], lifespan=lifespan)

if __name__ == "__main__":
    # An open page holds its stream of events open: without a limit the server would wait for it to be closed.
    uvicorn.run(web, port=int(os.environ.get("PORT", "8000")), timeout_graceful_shutdown=3)
