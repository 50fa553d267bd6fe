"""The bank of YCSB-T on FastAPI, asyncpg and PostgreSQL: a transfer is one call of a PL/pgSQL function.

Its paths, bodies and answers are those of a Styx gateway in front of the bank, so the same client talks to both. Bodies
are read by msgspec, because that costs less than FastAPI's own models.
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Final

import asyncpg
import msgspec
from fastapi import FastAPI, Request, Response

from benchmarks.reference.postgres_bank import TRANSFERS, abort_of, statement
from benchmarks.reference.serialized import Overloaded, pool_here, serialized

TRANSFER_VARIABLE: Final = "BENCHMARK_POSTGRES_TRANSFER"
"""Names the way that a transfer is written, one of `TRANSFERS`."""
_NO_PLACE: Final = {"id": 0, "epoch": 0, "phase": 0}
_encode: Final = msgspec.json.Encoder().encode
_arguments_of: Final = msgspec.json.Decoder(list[Any]).decode


def make_app() -> FastAPI:
    """The application of this process; its database is in the environment (`serialized.py`)."""
    app = FastAPI(lifespan=_connected, openapi_url=None)
    app.post("/v1/account/{key}/{function}")(call)
    app.exception_handler(asyncpg.PostgresError)(_aborted)
    app.exception_handler(Overloaded)(_overloaded)
    return app


@asynccontextmanager
async def _connected(app: FastAPI) -> AsyncIterator[None]:
    async with pool_here() as pool:
        app.state.pool, app.state.transfer = pool, os.environ[TRANSFER_VARIABLE]
        assert app.state.transfer in TRANSFERS
        yield


async def call(key: int, function: str, request: Request) -> Response:
    """A function of the bank. Raises `asyncpg.PostgresError` where the bank aborts, and `Overloaded`."""
    body = await request.body()
    arguments = _arguments_of(body) if body else []
    sql, parameters = statement(key, function, tuple(arguments), request.app.state.transfer)
    (result,) = await serialized(request.app.state.pool, sql, *parameters)
    return Response(_encode({"result": result, "transaction": _NO_PLACE}), media_type="application/json")


def _refusal(status: int, code: str, kind: str, error: Exception) -> Response:
    body = {"error": {"code": code, "type": kind, "message": str(error)}}
    return Response(_encode(body), status, media_type="application/json")


async def _aborted(_: Request, error: Exception) -> Response:
    assert isinstance(error, asyncpg.PostgresError)
    name = abort_of(error)
    if name is None:
        raise error
    return _refusal(409, "aborted", name, error)


async def _overloaded(_: Request, error: Exception) -> Response:
    return _refusal(429, "overloaded", "Overloaded", error)
