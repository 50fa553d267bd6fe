"""One producer's identity and its open transaction, as the transaction coordinator knows them: KIP-98 on the wire.

The identity is what fences: whoever initialises the same transactional id ends this one's transaction, and the brokers
refuse its records from then on (§7.2). Kafka keeps this promise, not a clock: a producer that only slept finds its
records refused when it wakes. Asks again while a coordinator moves or loads, for as long as it takes.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Iterable
from typing import Any, Final, NamedTuple

from aiokafka.protocol.transaction import AddPartitionsToTxnRequest, EndTxnRequest, InitProducerIdRequest

from styx.kafka.address import KafkaAddress
from styx.kafka.errors import CONCURRENT_TRANSACTIONS, NO_ERROR, AppendFailed, Fenced, fences, name_of, passes
from styx.kafka.session import RETRY_SECONDS, KafkaSession

TRANSACTION_SECONDS_MAX: Final = 900.0
"""The broker aborts a transaction after this, and with it fences the appender. Brokers allow no more by default."""
FENCE_SECONDS: Final = 30.0
"""How long fencing may take, a broker that is away included."""
CONCURRENT_RETRY_SECONDS: Final = 0.005
"""The end of a transaction is written within milliseconds; until then its coordinator says so."""

_NO_TIMEOUT: Final = 2**31 - 1
_NO_TRANSACTIONAL_ID: Final[str | None] = None


class ProducerIdentity(NamedTuple):
    """What every batch carries. A newer epoch of the same id fences the older."""

    producer_id: int
    epoch: int


async def initialize(session: KafkaSession, transactional_id: str | None) -> ProducerIdentity:
    """A new identity; returns when the transaction of the id's former owner is over. Raises `AppendFailed`.

    Without an id: an identity of its own, which only keeps repeated batches from being appended twice.
    """
    timeout_ms = _NO_TIMEOUT if transactional_id is None else int(TRANSACTION_SECONDS_MAX * 1000)
    request = InitProducerIdRequest(transactional_id, timeout_ms)
    coordinator = Coordinator(session, transactional_id)
    while True:
        answer = await coordinator.ask(request)
        if not await coordinator.again(answer.error_code, "start a producer"):
            return ProducerIdentity(answer.producer_id, answer.producer_epoch)


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


class Transaction:
    """The open transaction of `identity`. `partitions` are those it has records in.

    It is committed now and then, but its only purpose is fencing: readers see records at once, and nobody can append
    any more once somebody else has initialised the same id.
    """

    def __init__(self, session: KafkaSession, transactional_id: str, identity: ProducerIdentity) -> None:
        self.transactional_id = transactional_id
        self.partitions: set[tuple[str, int]] = set()
        self._identity = identity
        self._coordinator = Coordinator(session, transactional_id)
        self._adding = asyncio.Lock()

    async def add(self, partitions: Iterable[tuple[str, int]]) -> None:
        """To be awaited before the first record of a partition. Raises `Fenced` and `AppendFailed`."""
        new = set(partitions) - self.partitions
        if not new:
            return
        by_topic: defaultdict[str, list[int]] = defaultdict(list)
        for topic, partition in sorted(new):
            by_topic[topic].append(partition)
        request = AddPartitionsToTxnRequest(self.transactional_id, *self._identity, list(by_topic.items()))
        # One after the other: a coordinator does not take two at once.
        async with self._adding:
            while True:
                answer = await self._coordinator.ask(request)
                codes = {code for _, partitions in answer.errors for _, code in partitions} - {NO_ERROR}
                # One that does not pass decides; the others were not tried because of it.
                code = min(codes, key=passes, default=NO_ERROR)
                if not await self._coordinator.again(code, "go on with a transaction"):
                    self.partitions |= new
                    return

    async def commit(self) -> None:
        """Ends the transaction; the next `add` begins another. Raises `Fenced` and `AppendFailed`."""
        if not self.partitions:
            return
        request = EndTxnRequest(self.transactional_id, *self._identity, 1)
        while await self._coordinator.again((await self._coordinator.ask(request)).error_code, "commit a transaction"):
            pass
        self.partitions.clear()


class Coordinator:
    """The transaction coordinator of one transactional id, wherever it moves; any broker for no id."""

    def __init__(self, session: KafkaSession, transactional_id: str | None) -> None:
        self._session = session
        self._transactional_id = transactional_id
        self._node: int | None = None

    async def ask(self, request: Any) -> Any:
        """The answer, from the first broker that gives one."""
        while True:
            try:
                if self._transactional_id is None:
                    return await self._session.send_anywhere(request)
                if self._node is None:
                    self._node = await self._session.transaction_coordinator(self._transactional_id)
                if self._node is not None:
                    return await self._session.send(self._node, request, apart=True)
            except ConnectionError:
                self._node = None
            await asyncio.sleep(RETRY_SECONDS)
            await self._session.refresh()

    async def again(self, code: int, what: str) -> bool:
        """False for success; True, after a pause, if asking again can help. Raises `Fenced` and `AppendFailed`."""
        if code == NO_ERROR:
            return False
        if fences(code):
            raise Fenced(f"{self._transactional_id!r} was taken over: Kafka refuses to {what}: {name_of(code)}")
        if not passes(code):
            raise AppendFailed(f"{self._session} refuses to {what} as {self._transactional_id!r}: {name_of(code)}")
        if code == CONCURRENT_TRANSACTIONS:
            await asyncio.sleep(CONCURRENT_RETRY_SECONDS)
        else:
            self._node = None
            await asyncio.sleep(RETRY_SECONDS)
        return True
