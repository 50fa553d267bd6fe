"""How a statement's end reaches who asked for it, without a server."""

from __future__ import annotations

import asyncio
import gc
from typing import Any

import pytest

from benchmarks.reference.postgres_settle import fail

pytestmark = pytest.mark.anyio


async def test_nobody_complains_of_who_does_not_look() -> None:
    complaints: list[dict[str, Any]] = []
    loop = asyncio.get_running_loop()
    loop.set_exception_handler(lambda _, context: complaints.append(context))
    asked: asyncio.Future[Any] = loop.create_future()
    fail(asked, ConnectionError("closed before the server answered"))
    with pytest.raises(ConnectionError, match="closed"):
        await asked
    gone: asyncio.Future[Any] = loop.create_future()
    fail(gone, ConnectionError("closed before the server answered"))
    fail(gone, ConnectionError("again"))
    del gone
    gc.collect()
    assert not complaints
