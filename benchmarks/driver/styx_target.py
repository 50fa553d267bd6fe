"""A deployment of Styx as a target, through one of Styx's own clients."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, cast

from benchmarks.driver.target import Target
from benchmarks.driver.workload import Planned
from styx.client.base import Client
from styx.host.waiters import Receiver
from styx.messages import Reply
from styx.model.limits import Limits

if TYPE_CHECKING:
    from styx.client.kafka.client import KafkaClient


class ClientTarget:
    """A target behind any client. `open_client` gives a client that is not yet open."""

    def __init__(self, open_client: Callable[[], Client], timeout_s: float) -> None:
        self._client = open_client()
        self._timeout_s = timeout_s

    async def connect(self) -> None:
        """See `Target.connect`."""
        await self._client.__aenter__()

    def submit(self, planned: Planned, receiver: Receiver) -> None:
        """See `Target.submit`."""
        _, operator, key, function, arguments, _, _, outside, query = planned
        assert query is None, "a query is for a replica"
        client, seconds = self._client, self._timeout_s
        if outside:
            read = asyncio.ensure_future(client.read_request(operator, key, function, *arguments, timeout=seconds))
            read.add_done_callback(partial(settle, receiver))
            return
        reply = client.submit(operator, key, function, *arguments, timeout=seconds)
        # Every client returns a future or a task.
        cast("asyncio.Future[Reply]", reply).add_done_callback(partial(settle, receiver))

    async def close(self) -> None:
        """See `Target.close`."""
        await self._client.close()


class KafkaTarget:
    """A target behind the Kafka client, which needs no future for each request."""

    def __init__(self, client: KafkaClient, timeout_s: float) -> None:
        self._client = client
        self._timeout_s = timeout_s

    async def connect(self) -> None:
        """See `Target.connect`."""
        await self._client.__aenter__()

    def submit(self, planned: Planned, receiver: Receiver) -> None:
        """See `Target.submit`."""
        _, operator, key, function, arguments, _, _, outside, query = planned
        assert query is None, "a query is for a replica"
        assert not outside, "a client of Kafka has no way to read outside the log"
        self._client.submit_for(receiver, operator, key, function, *arguments, timeout=self._timeout_s)

    async def close(self) -> None:
        """See `Target.close`."""
        await self._client.close()


@dataclass(frozen=True)
class KafkaTargets:
    """A `TargetFactory` for the app `app_name`, through the brokers at `url`."""

    url: str
    app_name: str

    def __call__(self, timeout_s: float, in_flight_max: int) -> Target:
        from styx.client.kafka.client import KafkaClient

        # One more, so that the client does not refuse a request that the driver allows.
        limits = Limits(in_flight_max=in_flight_max + 1)
        return KafkaTarget(KafkaClient(self.url, self.app_name, limits), timeout_s)


@dataclass(frozen=True)
class HttpTargets:
    """A `TargetFactory` for the gateway at `url`."""

    url: str

    def __call__(self, timeout_s: float, in_flight_max: int) -> Target:
        from styx.client.connect import connect
        from styx.client.credential import from_environment

        return ClientTarget(lambda: connect(self.url, **from_environment(self.url)), timeout_s)


def settle(receiver: Receiver, future: asyncio.Future[Reply]) -> None:
    """Passes the outcome of a finished future to `receiver`."""
    if receiver.done():
        return
    if future.cancelled():
        receiver.set_exception(asyncio.CancelledError())
    elif (error := future.exception()) is not None:
        receiver.set_exception(error)
    else:
        receiver.set_result(future.result())
