"""Routing without the app's code: requests go to the slots that the app's published routing table names.

The table is in the directory topic of the app, which is compacted: the newest record with the key `ROUTING_KEY` counts.
The coordinator writes it.
"""

from __future__ import annotations

import asyncio
from typing import Final

import msgspec

from styx.errors import BadArguments, ConfigurationError, EngineFailed, NotSent
from styx.kafka.address import KafkaAddress
from styx.kafka.offsets import END, FIRST, check, grouped, list_offsets
from styx.kafka.session import RETRY_SECONDS, KafkaSession
from styx.kafka.tail import FETCH_BYTES_MAX, WAIT_MS
from styx.kafka.topics import ROUTING_KEY, topics_of
from styx.kafka.wire import Damaged, chunks_of, fetch_request
from styx.model.partition_function import PARTITIONS_SUFFIX
from styx.model.partitioning import KeySpace, PartitionNumbers
from styx.model.request import Router
from styx.schema.description import RoutingTable, decode_routing_table, parse_key_type

READ_SECONDS_MAX: Final = 10.0
"""How long reading the table may take."""
_UNREADABLE: Final = (msgspec.DecodeError, ValueError, RecursionError)


class TableRouter(Router):
    """Routes with what is published of an app, over `n_slots` slots.

    A slot is a guess where an operator has its own `partition_key`; a wrong one costs a round trip, since the worker
    sends the request back.
    """

    def __init__(self, table: RoutingTable, n_slots: int) -> None:
        routes = table.operators.items()
        spaces = {
            name: KeySpace(name, parse_key_type(route.key_type), route.n_partitions, None) for name, route in routes
        }
        for name, route in routes:
            partitions = name + PARTITIONS_SUFFIX
            spaces[partitions] = PartitionNumbers(partitions, route.n_partitions)
        super().__init__(spaces, n_slots)
        self._exact = {name: not route.partition_key for name, route in routes}

    def require_exact(self, operator: str) -> None:
        """Raises `BadArguments` if an operator's slots can only be guessed here, saying what to do."""
        if not self._exact.get(operator, True):
            raise BadArguments(
                f"operator {operator!r} has its own partition_key, which only the app's code knows: "
                "connect with the App instead of its name, or give the Operator"
            )


async def read_routing_table(address: KafkaAddress, app_name: str) -> RoutingTable:
    """The routing table published last.

    Raises `NotSent`, or `ConfigurationError` if there is none or it cannot be read.
    """
    topic = topics_of(app_name).directory
    session = KafkaSession(address)
    found: RoutingTable | Exception | None = None
    try:
        async with asyncio.timeout(READ_SECONDS_MAX):
            await session.open([topic])
            found = await _newest(session, topic)
    except (OSError, EngineFailed, Damaged) as error:
        raise NotSent(f"the topic {topic} cannot be read: {str(error) or 'no answer'}") from None
    finally:
        await session.close()
    if found is None:
        raise ConfigurationError(
            f"the topic {topic} says nothing about the app {app_name!r}: is it deployed? "
            "Until then, connect with the App instead of its name"
        )
    if isinstance(found, RoutingTable):
        return found
    raise ConfigurationError(
        f"the routing table in the topic {topic} cannot be read: {found}. Start the coordinator again, which writes it "
        "anew, or connect with the App instead of its name"
    )


async def _newest(session: KafkaSession, topic: str) -> RoutingTable | Exception | None:
    """The newest table that can be read; else why the newest one cannot be; None without any.

    Reads again after a `ConnectionError`, such as that of a leader that moves.
    """
    while True:
        try:
            return await _read(session, topic)
        except ConnectionError:
            await asyncio.sleep(RETRY_SECONDS)
            await session.refresh()


async def _read(session: KafkaSession, topic: str) -> RoutingTable | Exception | None:
    place = topic, 0
    position = (await list_offsets(session, [place], FIRST))[place]
    end = (await list_offsets(session, [place], END))[place]
    newest: RoutingTable | Exception | None = None
    while position < end:
        (leader,) = grouped(session, {place: position})
        request = fetch_request(
            topic, {0: position}, wait_ms=WAIT_MS, bytes_max=FETCH_BYTES_MAX, partition_bytes_max=FETCH_BYTES_MAX
        )
        chunk = chunks_of(await session.send(leader, request))[0]
        check(session, topic, 0, chunk.code)
        for record in chunk.records(position):
            if record.key != ROUTING_KEY:
                continue
            try:
                newest = decode_routing_table(record.value or b"")
            except _UNREADABLE as error:
                # A stranger's record does not take back the table before it.
                newest = newest if isinstance(newest, RoutingTable) else error
        position = chunk.next_offset(position)
    return newest
