"""A result is never of an older epoch than the session's token, whatever becomes of the state meanwhile."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pyarrow as pa
import pytest

from styx.http.asgi import Message
from styx.query.service import Answer, Asked, Limits
from styx.replica.sql_endpoint import SqlEndpoint
from styx.replica.watch import WatchEndpoint
from tests.replica.moments import SMALL

TOKEN = 9


class GoesBack:
    """A service whose state turns out to be of another history while the token is waited for, and soon reaches it
    again: behind the beginning of the query.
    """

    def __init__(self) -> None:
        self.reached: list[int] = []

    @asynccontextmanager
    async def run(self, _asked: Asked, _limits: Limits) -> AsyncIterator[Answer]:
        async def none() -> AsyncIterator[pa.RecordBatch]:
            batches: list[pa.RecordBatch] = []
            for batch in batches:
                yield batch

        yield Answer(TOKEN - 1, pa.schema([]), none())

    def tables(self) -> list[Any]:
        return []

    async def reach(self, epoch: int, _seconds: float) -> None:
        self.reached.append(epoch)


def of_sql(service: GoesBack) -> Any:
    return SqlEndpoint(service, SMALL, reach=service.reach)


def of_watch(service: GoesBack) -> Any:
    return WatchEndpoint(service, SMALL, asyncio.Event, lambda: False, service.reach)


@pytest.mark.parametrize(("endpoint", "method"), [(of_sql, "POST"), (of_watch, "GET")])
def test_a_result_below_the_token_is_refused(endpoint: Callable[[GoesBack], Any], method: str) -> None:
    async def test() -> None:
        service, sent = GoesBack(), list[Message]()
        body: asyncio.Queue[Message] = asyncio.Queue()
        body.put_nowait({"type": "http.request", "body": json.dumps({"sql": "select 1"}).encode(), "more_body": False})

        async def send(message: Message) -> None:
            sent.append(message)

        headers = [(b"styx-epoch", b"%d" % TOKEN), (b"content-type", b"application/json")]
        scope = {"type": "http", "method": method, "path": "/", "query_string": b"", "headers": headers}
        if method == "GET":
            scope["query_string"] = b"sql=select+1"
        await asyncio.wait_for(endpoint(service)(scope, body.get, send), 20)
        assert service.reached == [TOKEN]
        assert sent[0]["status"] == 504
        assert b"another history" in sent[1]["body"]

    asyncio.run(test())
