"""aiokafka's client, with corrections of what happens when connections end: it hangs, waits for minutes, fills the log.

It writes to a connection that is closed already, if it has not noticed yet. uvloop raises `RuntimeError` there, where
asyncio only warns, and aiokafka expects `OSError`: the task that looks up leaders would end, and whoever waits for it
would wait for good (aio-libs/aiokafka#1038).

It waits for a broker that vanished without a word, because its machine lost power or the network is cut, as long as for
a slow one, and as long again to connect, while nobody else can. The kernel knows better: what it sent is not received.

It reports each attempt to connect, dozens a second while a broker is away.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from typing import Any, Final

from aiokafka.client import AIOKafkaClient, ConnectionGroup
from aiokafka.conn import CloseReason

from styx.transport.socket_options import set_socket_options

CONNECT_SECONDS: Final = 5.0
"""How long connecting may take, a login included; then the other brokers are asked who leads."""
REPEAT_SECONDS: Final = 30.0
"""How long the same message is held back after it was shown."""

_LOGGERS: Final = ("aiokafka", "aiokafka.conn", "aiokafka.producer.sender", "aiokafka.consumer.fetcher")


def mended(client: AIOKafkaClient) -> AIOKafkaClient:
    """`client`, which from now on finds a connection that the kernel has closed to be none, gives up a connection whose
    other end vanished, and connects within `CONNECT_SECONDS`. It still waits for a broker that is only slow.
    """
    for name in _LOGGERS:
        logging.getLogger(name).addFilter(_repeated)
    get_connection = client._get_conn

    async def get_mended_connection(
        node_id: Any, *, group: ConnectionGroup = ConnectionGroup.DEFAULT, **options: Any
    ) -> Any:
        known = client._conns.get((node_id, group))
        if known is not None and known.connected():
            connection = known
        else:
            try:
                async with asyncio.timeout(CONNECT_SECONDS):
                    connection = await get_connection(node_id, group=group, **options)
            except TimeoutError:
                # As for every other broker that cannot be reached.
                client.force_metadata_update()
                return None
        writer = None if connection is None else connection._writer
        if writer is None:
            return connection
        if writer.transport.is_closing():
            connection.close(reason=CloseReason.CONNECTION_BROKEN)
            return None
        if connection is not known:
            set_socket_options(writer.transport.get_extra_info("socket"))
        return connection

    client._get_conn = get_mended_connection
    return client


class Repeated(logging.Filter):
    """Holds back messages that were shown a short while ago, whatever their arguments.

    Remembers one time for each message text of the source.
    """

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
