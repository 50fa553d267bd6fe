"""A replica beside a deployment, as a part of the target: what is planned as a query in SQL goes to the replica over
HTTP, and all else to the deployment.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

import aiohttp
import msgspec

from benchmarks.driver.styx_target import settle
from benchmarks.driver.target import Target, TargetFactory
from benchmarks.driver.workload import Planned, SqlQuery
from styx.host.waiters import Receiver
from styx.messages import Reply, ReplyError
from styx.protocol.reads import READ_PHASE

READY_SECONDS_MAX: Final = 120.0
"""A replica is ready when it has all that was loaded."""
POLL_SECONDS: Final = 0.2
CONNECTIONS_MAX: Final = 64
_OK: Final = 200
_TOO_MUCH: Final = (429, 503)
NO_EPOCH: Final = -2
"""Of a replica that has no state."""


class _Result(msgspec.Struct):
    epoch: int
    rows: list[dict[str, Any]]


class _Status(msgspec.Struct):
    epoch: int = NO_EPOCH


_decode = msgspec.json.Decoder(_Result).decode
_status = msgspec.json.Decoder(_Status).decode


class ReplicaTarget:
    """A `Target`: `inner`, and the replica at `url`, which is asked when it has come to the epoch `at_least`."""

    def __init__(self, inner: Target, url: str, timeout_s: float, at_least: int) -> None:
        self._inner = inner
        self._url = url
        self._at_least = at_least
        self._timeout_s = timeout_s
        self._session: aiohttp.ClientSession | None = None

    async def connect(self) -> None:
        """See `Target.connect`; raises as `open`."""
        await self._inner.connect()
        await self.open()

    async def open(self) -> None:
        """Connects to the replica alone. Raises `ConnectionError` if it does not become ready."""
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=CONNECTIONS_MAX),
            timeout=aiohttp.ClientTimeout(total=self._timeout_s),
        )
        try:
            async with asyncio.timeout(READY_SECONDS_MAX):
                while not await self._is_ready(self._session):  # noqa: ASYNC110 - another process has no event
                    await asyncio.sleep(POLL_SECONDS)
        except TimeoutError:
            raise ConnectionError(f"the replica at {self._url} is not ready after {READY_SECONDS_MAX:g} s") from None

    def submit(self, planned: Planned, receiver: Receiver) -> None:
        """See `Target.submit`."""
        if planned.query is None:
            self._inner.submit(planned, receiver)
            return
        asked = asyncio.ensure_future(self._asked(planned.query))
        asked.add_done_callback(partial(settle, receiver))

    async def close(self) -> None:
        """See `Target.close`."""
        await self.leave()
        await self._inner.close()

    async def leave(self) -> None:
        """Lets go of the replica alone."""
        if self._session is not None:
            await self._session.close()

    async def _asked(self, query: SqlQuery) -> Reply:
        assert self._session is not None, "it is connected"
        body = {"sql": query.sql, "parameters": list(query.parameters), "format": "json"}
        try:
            async with self._session.post(f"{self._url}/v1/sql", json=body) as response:
                data = await response.read()
        except aiohttp.ClientError as error:
            raise ConnectionError(str(error)) from None
        if response.status != _OK:
            code = "overloaded" if response.status in _TOO_MUCH else "bad_request"
            return Reply(None, ReplyError("", data.decode(errors="replace"), code), 0, 0, 0, "")
        result = _decode(data)
        return Reply(query.result(result.rows), None, 0, result.epoch, READ_PHASE, "")

    async def _is_ready(self, session: aiohttp.ClientSession) -> bool:
        try:
            async with session.get(f"{self._url}/status") as response:
                return response.status == _OK and _status(await response.read()).epoch >= self._at_least
        except aiohttp.ClientError:
            return False


@dataclass(frozen=True)
class ReplicaTargets:
    """A `TargetFactory`: the targets of another one, each with a replica, as `ReplicaTarget`."""

    inner: TargetFactory
    url: str
    at_least: int

    def __call__(self, timeout_s: float, in_flight_max: int) -> Target:
        return ReplicaTarget(self.inner(timeout_s, in_flight_max), self.url, timeout_s, self.at_least)
