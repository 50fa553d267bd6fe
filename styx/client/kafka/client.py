"""The Kafka client: requests straight into the topics of a deployment, without a gateway between.

It never retries. A request that waits while Kafka is away goes out when it is back, and may then commit after its
timeout. Kafka away for long means `NotSent`: nothing was sent.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import Any, Final, Self

import msgspec

from styx.client.base import (
    FunctionLike,
    KeyLike,
    OperatorLike,
    RemoteClient,
    check_idempotency_key,
    check_key,
    check_timeout,
    function_name,
    not_open,
    operator_name,
    rejected,
)
from styx.client.home import Home
from styx.client.kafka.directory import read_routing_table
from styx.client.kafka.load import KafkaLoadTarget
from styx.client.kafka.requester import Requester
from styx.client.kafka.routing import AppRouter, Router, TableRouter, place
from styx.client.kafka.waiters import Receiver, fail
from styx.client.load import LoadTarget
from styx.errors import BadArguments, InTransactionError, RequestRejected, UnsupportedValue
from styx.kafka.address import parse_kafka_url
from styx.kafka.topics import topics_of
from styx.messages import Reply, Request
from styx.model.app import App
from styx.model.limits import TIMEOUT_SECONDS_DEFAULT, Limits
from styx.model.operator import Operator
from styx.values.codec import encode_any

_NO_ARGUMENTS: Final = b"\x90"
_FROM_THREADS: Final = "styx.connect_sync(url, app)"
_encode: Final = msgspec.msgpack.Encoder().encode


class KafkaClient(RemoteClient):
    """A client of the app behind the brokers at `url`, such as `kafka://127.0.0.1:9092`; use it as `async with`.

    `app`: the app, or only its name; then the routing table that its deployment has published is used.

    Raises `ConfigurationError` for a URL that is none, or a name that no app in a cluster can have. Entering raises
    `NotSent`, a `ConnectionError`, or `ConfigurationError` if there is no such app.
    """

    def __init__(self, url: str, app: App | str, limits: Limits | None = None) -> None:
        self._address = parse_kafka_url(url)
        self._app = app
        self._name = app.name if isinstance(app, App) else app
        topics_of(self._name)
        self._limits = limits or Limits()
        self._home: Home | None = None
        self._requester: Requester | None = None
        self._router: Router | None = None

    async def __aenter__(self) -> Self:
        app = self._app
        requester = Requester(self._address, self._name, self._limits)
        await requester.start()
        try:
            if isinstance(app, App):
                self._router = AppRouter(app, requester.n_slots)
            else:
                table = await read_routing_table(self._address, self._name)
                self._router = TableRouter(table, requester.n_slots)
        except BaseException:
            await requester.close()
            raise
        self._home = Home()
        self._requester = requester
        return self

    async def close(self) -> None:
        """Disconnects. Requests under way end in `OutcomeUnknown`, a `ConnectionError`: they may still commit."""
        if self._home is not None:
            self._home.check(_FROM_THREADS)
        requester, self._requester = self._requester, None
        if requester is not None:
            await requester.close()

    def submit(
        self,
        operator: OperatorLike,
        key: KeyLike,
        function: FunctionLike,
        *args: Any,
        timeout: float = TIMEOUT_SECONDS_DEFAULT,
        idempotency_key: str | None = None,
    ) -> Awaitable[Reply]:
        """As `Client.submit`. All requests submitted in one turn of the event loop leave together."""
        requester, router = self._opened()
        future: asyncio.Future[Reply] = asyncio.get_running_loop().create_future()
        self._submit(requester, router, future, operator, key, function, args, timeout, idempotency_key)
        return future

    def submit_for(
        self,
        receiver: Receiver,
        operator: OperatorLike,
        key: KeyLike,
        function: FunctionLike,
        *args: Any,
        timeout: float = TIMEOUT_SECONDS_DEFAULT,
        idempotency_key: str | None = None,
    ) -> None:
        """As `submit`, with less work for each request: the reply, or what `request` raises, goes to `receiver`.

        It is given in the turn of the event loop in which it comes, or in this call if the request cannot be sent.
        """
        self._submit(*self._opened(), receiver, operator, key, function, args, timeout, idempotency_key)

    def _submit(
        self,
        requester: Requester,
        router: Router,
        receiver: Receiver,
        operator: OperatorLike,
        key: KeyLike,
        function: FunctionLike,
        args: tuple[Any, ...],
        timeout: float,
        idempotency_key: str | None,
    ) -> None:
        if timeout != TIMEOUT_SECONDS_DEFAULT:
            check_timeout(timeout)
        try:
            kind = type(key)
            if kind is not str and kind is not int:
                key = check_key(operator, key)
            if isinstance(operator, Operator):
                name = operator.name
                checked, slot = place(operator, key, router.n_slots)
            else:
                name = operator_name(operator)
                checked, slot = router.place_by_name(name, key)
            request = Request(
                requester.next_request_id(),
                name,
                list(checked) if isinstance(checked, tuple) else checked,
                function if type(function) is str else function_name(function),
                _arguments(args) if args else _NO_ARGUMENTS,
                "" if idempotency_key is None else check_idempotency_key(idempotency_key),
                requester.reply_to,
            )
            requester.send(request, slot, timeout, receiver)
        except (InTransactionError, RequestRejected) as error:
            if isinstance(error, ConnectionError):
                fail(receiver, error)
            else:
                receiver.set_result(rejected(error))

    def load_target(self, operator: OperatorLike, replace: bool, timeout: float) -> LoadTarget:
        """As `Client.load_target`: chunks by slot. Raises `BadArguments` if slots cannot be known here."""
        requester, router = self._opened()
        name = operator_name(operator)
        declared: Operator | None = operator if isinstance(operator, Operator) else None
        if declared is None:
            if isinstance(self._app, App):
                declared = self._app.operator(name)
            else:
                router.require_exact(name)
        return KafkaLoadTarget(requester, router, declared, name, replace, timeout)

    def _opened(self) -> tuple[Requester, Router]:
        if self._requester is None or self._router is None or self._home is None:
            raise not_open("async with")
        self._home.check(_FROM_THREADS)
        return self._requester, self._router


def _arguments(args: tuple[Any, ...]) -> bytes:
    try:
        return _encode(args)
    except Exception:  # noqa: BLE001 - `encode_any` knows which of them are the arguments' fault, and what to say
        try:
            return encode_any(args, "the arguments")
        except UnsupportedValue as error:
            raise BadArguments(str(error)) from None
