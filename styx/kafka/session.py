"""A connection to Kafka: aiokafka's client, with leaders, coordinators and requests, and errors as `OSError`.
And a filter that holds back log messages which the client repeats.

All traffic of the log and its clients goes through it, and no other module knows aiokafka's client. It repeats nothing:
the caller knows whether a repetition is safe.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Coroutine, Iterable
from typing import Any, Final, TypeVar

from aiokafka.client import AIOKafkaClient, ConnectionGroup, CoordinationType
from aiokafka.conn import CloseReason, create_conn
from aiokafka.errors import (
    AuthenticationFailedError,
    KafkaConnectionError,
    KafkaError,
    SaslAuthenticationFailed,
    UnsupportedSaslMechanismError,
)
from aiokafka.structs import TopicPartition

from styx.errors import ConfigurationError
from styx.kafka.address import PASSWORD_VARIABLE, USERNAME_VARIABLE, KafkaAddress
from styx.kafka.exchanges import Exchanges
from styx.transport.socket_options import set_socket_options

REQUEST_SECONDS: Final = 15.0
"""One exchange with a broker; its connection is given up a few seconds after this."""
RETRY_SECONDS: Final = 0.1
"""Between two attempts after a temporary error."""
CLOSE_SECONDS_MAX: Final = 2.0
"""How long closing waits for connections that are being made."""

CONNECT_SECONDS: Final = 5.0
"""How long connecting may take, a login included; then the other brokers are asked who leads."""
REPEAT_SECONDS: Final = 30.0
"""How long the same message is held back after it was shown."""

_LOGGERS: Final = ("aiokafka", "aiokafka.conn", "aiokafka.producer.sender", "aiokafka.consumer.fetcher")
_UNKNOWN_LEADER: Final = -1
_NOT_LET_IN: Final = (AuthenticationFailedError, SaslAuthenticationFailed, UnsupportedSaslMechanismError)

T = TypeVar("T")


class Repeated(logging.Filter):
    """Holds back log messages whose text, without its arguments, was shown a short while ago."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self._clock = clock
        self._shown: dict[tuple[int, str], float] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        key = record.levelno, str(record.msg)
        now = self._clock()
        if now - self._shown.get(key, -REPEAT_SECONDS) < REPEAT_SECONDS:
            return False
        self._shown[key] = now
        return True


_repeated: Final = Repeated()


class MendedClient(AIOKafkaClient):  # type: ignore[misc] # aiokafka has no types
    """aiokafka's client, with corrections for connections that end: it would hang, wait for minutes, or fill the log.

    - aiokafka writes to a connection that is closed, if it has not noticed yet. uvloop raises `RuntimeError` there,
      where asyncio only warns, and aiokafka expects `OSError`: the task that looks up leaders would end, and its
      callers would wait for good (aio-libs/aiokafka#1038). Here a connection that the kernel has closed is none.
    - aiokafka waits for a broker that vanished without a word, after a power cut say, as long as for a slow broker, and
      as long again to connect, while others wait. Here the kernel's keepalive ends such a connection, and connecting
      takes at most `CONNECT_SECONDS`. A broker that is only slow is still waited for.
    - aiokafka logs each attempt to connect, dozens a second while a broker is away. Here a text is held back for
      `REPEAT_SECONDS`.
    """

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.exchanges: dict[tuple[Any, ConnectionGroup], Exchanges] = {}
        for name in _LOGGERS:
            logging.getLogger(name).addFilter(_repeated)

    async def _get_conn(self, node_id: Any, *, group: ConnectionGroup = ConnectionGroup.DEFAULT, **options: Any) -> Any:
        known = self._conns.get((node_id, group))
        if known is not None and known.connected():
            connection = known
        else:
            try:
                async with asyncio.timeout(CONNECT_SECONDS):
                    connection = await super()._get_conn(node_id, group=group, **options)
            except TimeoutError:
                # As for every other broker that cannot be reached.
                self.force_metadata_update()
                return None
        writer = None if connection is None else connection._writer
        if writer is None:
            return connection
        if writer.transport.is_closing():
            connection.close(reason=CloseReason.CONNECTION_BROKEN)
            return None
        if connection is not known:
            taken = self.exchanges.get((node_id, group))
            if taken is None or not taken.of(connection):  # else whoever has waited for the connection, too, was faster
                set_socket_options(writer.transport.get_extra_info("socket"))
                self.exchanges[node_id, group] = Exchanges(connection, REQUEST_SECONDS)
        return connection


class KafkaSession:
    """For one event loop. `address` may be a plain HOST:PORT,HOST:PORT."""

    def __init__(self, address: KafkaAddress | str) -> None:
        self.address = KafkaAddress(address) if isinstance(address, str) else address
        self._client = MendedClient(
            **self.address.options(),
            client_id="styx",
            request_timeout_ms=int(REQUEST_SECONDS * 1000),
            retry_backoff_ms=int(RETRY_SECONDS * 1000),
        )
        self._connecting: set[asyncio.Task[Any]] = set()
        self._leaders: dict[tuple[str, int], int | None] = {}
        self._client.cluster.add_listener(lambda _: self._leaders.clear())

    async def open(self, topics: Iterable[str] = ()) -> None:
        """Connects, and learns the leaders of the partitions of `topics`. `close` has to follow, even if this raises.

        Raises `ConnectionError` and `ConfigurationError`.
        """
        wanted = list(topics)
        try:
            await self._to_its_end(self._client.bootstrap())
            if wanted:
                await self._client.set_topics(wanted)
        except KafkaConnectionError:
            await self._check_login()
            # aiokafka's own text is only the list of addresses.
            why = f"nobody answers there, or nobody who speaks {self.address.protocol}"
            raise ConnectionError(f"{self} cannot be reached: {why}") from None
        except KafkaError as error:
            raise ConnectionError(f"{self} cannot be reached: {error}") from None

    async def close(self) -> None:
        """Disconnects; requests under way fail."""
        if self._connecting:
            await asyncio.wait(self._connecting, timeout=CLOSE_SECONDS_MAX)
        await self._client.close()

    def track(self, topic: str) -> None:
        """Begins to look up the leaders of another topic; `refresh` waits for them."""
        self._client.add_topic(topic)

    async def refresh(self) -> bool:
        """Looks up all leaders anew; False without an answer."""
        return bool(await self._client.force_metadata_update())

    def partitions(self, topic: str) -> set[int]:
        """The partitions of a topic that is looked up; empty if there is no such topic."""
        return self._client.cluster.partitions_for_topic(topic) or set()

    def leader(self, topic: str, partition: int) -> int | None:
        """The broker that leads a partition, None without one; `refresh` may find one."""
        place, leaders = (topic, partition), self._leaders
        if place not in leaders:
            node = self._client.cluster.leader_for_partition(TopicPartition(topic, partition))
            leaders[place] = None if node == _UNKNOWN_LEADER else node
        return leaders[place]

    async def send(self, node: int, request: Any, *, apart: bool = False) -> Any:
        """The broker's answer. `apart` takes a second connection, whose requests do not wait for those on the first.

        Raises `ConnectionError`; the broker may have acted on the request all the same.
        """
        group = ConnectionGroup.COORDINATION if apart else ConnectionGroup.DEFAULT
        try:
            exchanges = self._client.exchanges.get((node, group))
            # Usually it is connected, which saves a task.
            if exchanges is None or not exchanges.open:
                if not await self._to_its_end(self._client.ready(node, group=group)):
                    raise ConnectionError(f"{self}, broker {node} cannot be reached")
                exchanges = self._client.exchanges[node, group]
            return await exchanges.ask(request)
        except KafkaError as error:
            raise ConnectionError(f"{self}, broker {node}: {error}") from None

    async def send_anywhere(self, request: Any) -> Any:
        """As `send`, to any broker."""
        return await self.send(self._any_broker(), request)

    async def transaction_coordinator(self, transactional_id: str) -> int | None:
        """The coordinating broker of an id, None without one.

        Raises `ConnectionError`, and `ConfigurationError` if the id is not allowed.
        """
        self._any_broker()
        try:
            node: int = await self._to_its_end(
                self._client.coordinator_lookup(CoordinationType.TRANSACTION, transactional_id)
            )
        except KafkaError as error:
            if error.retriable:
                return None
            raise ConfigurationError(f"{self} refuses the transactional id {transactional_id!r}: {error}") from None
        return node

    async def _check_login(self) -> None:
        """Raises `ConfigurationError` if a broker refuses the login, which aiokafka's own error does not tell."""
        if not self.address.protocol.startswith("SASL"):
            return
        options = self.address.options()
        del options["bootstrap_servers"]
        for host, port, _ in self._client.hosts:
            try:
                connection = await self._to_its_end(
                    create_conn(host, port, request_timeout_ms=int(REQUEST_SECONDS * 1000), **options)
                )
            except _NOT_LET_IN as error:
                raise ConfigurationError(
                    f"{self} does not let the user {self.address.username!r} in: {error}. "
                    f"Are {USERNAME_VARIABLE} and {PASSWORD_VARIABLE}, and the mechanism, those of the brokers?"
                ) from None
            except (OSError, KafkaError):
                continue
            await connection.close()

    async def _to_its_end(self, connecting: Coroutine[Any, Any, T]) -> T:
        """Shields a connecting coroutine: aiokafka leaks a connection if it is cancelled while it makes one."""
        task = asyncio.create_task(connecting)
        self._connecting.add(task)
        task.add_done_callback(self._connecting.discard)
        return await asyncio.shield(task)

    def _any_broker(self) -> int:
        node: int | None = self._client.get_random_node()
        if node is None:
            raise ConnectionError(f"{self} names no broker")
        return node

    def __str__(self) -> str:
        return f"Kafka at {self.address.bootstrap}"
