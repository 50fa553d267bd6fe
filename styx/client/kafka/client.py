"""The Kafka client: sends requests straight into the topics of a deployment, without a gateway.

It repeats no request, except for the chunks of a bulk load, which have idempotency keys. A request that waits while
Kafka is unreachable is sent when Kafka is back, and may then commit after its timeout. If Kafka is unreachable for
long, requests fail with `NotSent`: nothing was sent.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import Any, Final, Self

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
from styx.client.events import EventReader, reader_of
from styx.client.home import Home
from styx.client.kafka.events import KafkaEvents
from styx.client.kafka.requester import Requester
from styx.client.kafka.routing import TableRouter, read_routing_table
from styx.client.load import Chunk, LoadTarget, chunk_bytes_max, split_pair
from styx.client.loaded import Loaded, RowsOf, what_is_loaded
from styx.errors import InTransactionError, RequestRejected
from styx.host.waiters import Receiver, fail
from styx.kafka.address import parse_kafka_url
from styx.kafka.topics import topics_of
from styx.messages import Reply
from styx.model.app import App
from styx.model.bulk_load import encode_pair
from styx.model.event import Event
from styx.model.limits import TIMEOUT_SECONDS_DEFAULT, Limits
from styx.model.operator import Operator
from styx.model.partitioning import Key
from styx.model.request import AppRouter, RequestMaker, Router, encode_arguments
from styx.model.signature import NO_ARGUMENTS
from styx.values.codec import encode_any

LOAD_ATTEMPTS_MAX: Final = 5
"""Attempts to send one chunk of a bulk load; its name is its idempotency key."""

_FROM_THREADS: Final = "styx.connect_sync(url, app)"


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
        self._router: Router
        self._maker: RequestMaker | None = None

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
        self._requester, self._maker = requester, requester.maker(self._router)
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
        requester, maker = self._opened()
        future: asyncio.Future[Reply] = asyncio.get_running_loop().create_future()
        self._submit(requester, maker, future, operator, key, function, args, timeout, idempotency_key)
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
        maker: RequestMaker,
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
            if isinstance(operator, Operator):
                key = operator.key_space.check(key)
            else:
                operator = operator_name(operator)
                if type(key) is not str and type(key) is not int:
                    key = check_key(operator, key)
            request = maker.make(
                operator,
                key,
                function if type(function) is str else function_name(function),
                encode_arguments(args) if args else NO_ARGUMENTS,
                "" if idempotency_key is None else check_idempotency_key(idempotency_key),
            )
            requester.send(request, timeout, receiver)
        except (InTransactionError, RequestRejected) as error:
            if isinstance(error, ConnectionError):
                fail(receiver, error)
            else:
                receiver.set_result(rejected(error))

    def load_target(self, operator: OperatorLike | RowsOf, replace: bool, timeout: float) -> LoadTarget:
        """As `Client.load_target`: chunks by slot. Raises `BadArguments` if slots cannot be known here."""
        requester, maker = self._opened()
        app = self._app if isinstance(self._app, App) else None
        wanted = operator if isinstance(operator, RowsOf | Operator) else operator_name(operator)
        loaded = what_is_loaded(wanted, app, _plain)
        if loaded.declared is None and isinstance(self._router, TableRouter):
            self._router.require_exact(loaded.operator)
        return KafkaLoadTarget(requester, maker, self._router, loaded, replace, timeout)

    def _known_app(self) -> App:
        return self._app if isinstance(self._app, App) else super()._known_app()

    def events(self, event: Event[Any] | str, *, after: str | None = None, follow: bool = True) -> EventReader:
        """As `Client.events`; an event comes a fraction of a second after its commit."""
        self._opened()
        app = self._app if isinstance(self._app, App) else None
        source = KafkaEvents(self._address, self._name, lambda: self._requester is None)
        return reader_of(source, app, event, after, follow)

    def _opened(self) -> tuple[Requester, RequestMaker]:
        if self._requester is None or self._maker is None or self._home is None:
            raise not_open("async with")
        self._home.check(_FROM_THREADS)
        return self._requester, self._maker


class KafkaLoadTarget(LoadTarget):
    """Puts what is `loaded`: a chunk is one request to one slot.

    If the client does not know the operator or table, the worker checks the values.
    """

    attempts_max = LOAD_ATTEMPTS_MAX

    def __init__(
        self,
        requester: Requester,
        maker: RequestMaker,
        router: Router,
        loaded: Loaded,
        replace: bool,
        timeout: float,
    ) -> None:
        self.operator = loaded.name
        self.bytes_max = chunk_bytes_max(requester.limits)
        self._requester = requester
        self._maker = maker
        self._router = router
        self._loaded = loaded
        self._replace = replace
        self._timeout = timeout

    def place(self, pair: Any) -> tuple[int, Key, bytes]:
        """As `LoadTarget.place`."""
        key, value = split_pair(pair)
        loaded = self._loaded
        declared = loaded.declared
        if declared is None:
            checked, slot = self._router.place(loaded.operator, check_key(loaded.operator, key))
        else:
            checked, slot = self._router.place(declared, declared.check_key(key))
        return slot, checked, encode_pair(checked, loaded.encoded(checked, value))

    async def send(self, chunk: Chunk) -> None:
        """As `LoadTarget.send`."""
        loaded = self._loaded
        arguments = loaded.arguments(chunk.pairs, self._replace)
        operator = loaded.declared or loaded.operator
        request = self._maker.make(operator, chunk.keys[0], loaded.function, arguments, chunk.name)
        (await self._requester.submit(request, self._timeout)).unwrap()


def _plain(value: Any) -> bytes:
    return encode_any(value, "the value")
