"""Keeps aiokafka from writing to a connection that is closed already, which it may not have noticed yet.

uvloop raises `RuntimeError` there, where asyncio only warns. aiokafka expects `OSError`: the task that looks up leaders
would end, and whoever waits for it would wait for good (aio-libs/aiokafka#1038). Never opens a
connection and never repeats anything.
"""

from __future__ import annotations

from typing import Any

from aiokafka.client import AIOKafkaClient
from aiokafka.conn import CloseReason


def drop_closed_connections(client: AIOKafkaClient) -> None:
    """From now on `client` finds a connection that the kernel has closed to be none."""
    get_connection = client._get_conn

    async def get_open_connection(node_id: Any, **options: Any) -> Any:
        connection = await get_connection(node_id, **options)
        writer = None if connection is None else connection._writer
        if writer is not None and writer.transport.is_closing():
            connection.close(reason=CloseReason.CONNECTION_BROKEN)
            return None
        return connection

    client._get_conn = get_open_connection
