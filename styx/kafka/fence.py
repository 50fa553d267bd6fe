"""Fencing: takes over transactional ids, so that whoever used one can append nothing any more (§7.2).

Kafka keeps this promise, not a clock: a producer that only slept finds its records refused when it wakes.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Final

from styx.kafka.address import KafkaAddress
from styx.kafka.session import RETRY_SECONDS, KafkaSession
from styx.kafka.transaction import ProducerIdentity, initialize

FENCE_SECONDS: Final = 30.0
"""How long fencing may take, a broker that is away included."""


async def fence(
    address: KafkaAddress | str, transactional_ids: Iterable[str], timeout_seconds: float = FENCE_SECONDS
) -> list[ProducerIdentity]:
    """When it returns, no appender that had one of the ids before can append any more; all they appended stands.

    Returns the new identities, in the order of the ids: with one, an appender can append until the next fence.

    Raises `TimeoutError`, then some of the ids may be fenced; `ConfigurationError` and `AppendFailed` if refused.
    """
    session = KafkaSession(address)
    try:
        async with asyncio.timeout(timeout_seconds):
            await _open(session)
            return await asyncio.gather(*(initialize(session, each) for each in transactional_ids))
    except TimeoutError:
        raise TimeoutError(f"{session} did not fence former appenders within {timeout_seconds} s") from None
    finally:
        await session.close()


async def _open(session: KafkaSession) -> None:
    while True:
        try:
            await session.open()
            return
        except ConnectionError:
            await asyncio.sleep(RETRY_SECONDS)
