"""Has a broker that vanished without a word noticed in seconds: its machine lost power, or the network is cut.

Nothing closes such a connection, and aiokafka waits for an answer as long as for a slow broker's, then as long again to
connect, while nobody else can. The kernel knows better: what it sent is not even received. Never ends a connection to a
broker that is only slow, and repeats nothing.
"""

from __future__ import annotations

import asyncio
from typing import Any, Final

from aiokafka.client import AIOKafkaClient, ConnectionGroup

from styx.transport.socket_options import set_socket_options

CONNECT_SECONDS: Final = 5.0
"""How long connecting may take, a login included; then the other brokers are asked who leads."""


def notice_vanished_brokers(client: AIOKafkaClient) -> None:
    """From now on `client` gives up a connection whose other end vanished, and does not wait long for one."""
    get_connection = client._get_conn

    async def get_watched_connection(
        node_id: Any, *, group: ConnectionGroup = ConnectionGroup.DEFAULT, **options: Any
    ) -> Any:
        known = client._conns.get((node_id, group))
        if known is not None and known.connected():
            return await get_connection(node_id, group=group, **options)
        try:
            async with asyncio.timeout(CONNECT_SECONDS):
                connection = await get_connection(node_id, group=group, **options)
        except TimeoutError:
            # As for every other broker that cannot be reached.
            client.force_metadata_update()
            return None
        if connection is not None and connection._writer is not None:
            set_socket_options(connection._writer.transport.get_extra_info("socket"))
        return connection

    client._get_conn = get_watched_connection
