"""A deployment of Styx as a target: requests through one of Styx's own clients, unchanged."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, cast

from benchmarks.driver.target import Target
from benchmarks.driver.workload import Planned
from styx.client.base import Client
from styx.client.kafka.waiters import Receiver
from styx.messages import Reply
from styx.model.limits import Limits

if TYPE_CHECKING:
    from styx.client.kafka.client import KafkaClient


class ClientTarget:
    """Through any client; `open_client` gives one that is not open yet."""

    def __init__(self, open_client: Callable[[], Client], timeout_s: float) -> None:
        self._client = open_client()
        self._timeout_s = timeout_s

    async def connect(self) -> None:
        """As `Target.connect`."""
        await self._client.__aenter__()

    def submit(self, planned: Planned, receiver: Receiver) -> None:
        """As `Target.submit`."""
        _, operator, key, function, arguments = planned
        reply = self._client.submit(operator, key, function, *arguments, timeout=self._timeout_s)
        # Of every client: a future or a task.
        cast("asyncio.Future[Reply]", reply).add_done_callback(partial(settle, receiver))

    async def close(self) -> None:
        """As `Target.close`."""
        await self._client.close()


class KafkaTarget:
    """Through the Kafka client, which needs no future for each request."""

    def __init__(self, client: KafkaClient, timeout_s: float) -> None:
        self._client = client
        self._timeout_s = timeout_s

    async def connect(self) -> None:
        """As `Target.connect`."""
        await self._client.__aenter__()

    def submit(self, planned: Planned, receiver: Receiver) -> None:
        """As `Target.submit`."""
        _, operator, key, function, arguments = planned
        self._client.submit_for(receiver, operator, key, function, *arguments, timeout=self._timeout_s)

    async def close(self) -> None:
        """As `Target.close`."""
        await self._client.close()


@dataclass(frozen=True)
class KafkaTargets:
    """A `TargetFactory`: through the brokers at `url` to the app called `app_name`."""

    url: str
    app_name: str

    def __call__(self, timeout_s: float, in_flight_max: int) -> Target:
        from styx.client.kafka.client import KafkaClient

        # One more: what the driver lets in must not be refused here.
        limits = Limits(in_flight_max=in_flight_max + 1)
        return KafkaTarget(KafkaClient(self.url, self.app_name, limits), timeout_s)


@dataclass(frozen=True)
class HttpTargets:
    """A `TargetFactory`: through the gateway at `url`."""

    url: str

    def __call__(self, timeout_s: float, in_flight_max: int) -> Target:
        from styx.client.connect import connect
        from styx.client.credential import from_environment

        return ClientTarget(lambda: connect(self.url, **from_environment(self.url)), timeout_s)


def settle(receiver: Receiver, future: asyncio.Future[Reply]) -> None:
    """Tells `receiver` what a future that is done has come to."""
    if receiver.done():
        return
    if future.cancelled():
        receiver.set_exception(asyncio.CancelledError())
    elif (error := future.exception()) is not None:
        receiver.set_exception(error)
    else:
        receiver.set_result(future.result())
