"""A producer's identity and its open transaction, as the transaction coordinator knows them: KIP-98 on the wire.

Identities fence (§7.2): the next initialisation of a transactional id ends the transaction of its former owner, and the
brokers refuse the former owner's records from then on. No clock is involved: a producer that only slept finds its
records refused when it wakes. Requests are repeated while a coordinator moves or loads, for as long as it takes.
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
"""After this time the broker aborts a transaction and fences its appender. Brokers allow no more by default."""
FENCE_SECONDS: Final = 30.0
"""How long fencing may take, an unreachable broker included."""
CONCURRENT_RETRY_SECONDS: Final = 0.005
"""Between two questions while the end of a transaction is being written, which takes milliseconds."""

_NO_TIMEOUT: Final = 2**31 - 1


class ProducerIdentity(NamedTuple):
    """The producer of a batch. A newer epoch of an id fences the older ones."""

    producer_id: int
    epoch: int


async def initialize(session: KafkaSession, transactional_id: str | None) -> ProducerIdentity:
    """A new identity, once the transaction of the id's former owner has ended. Raises `AppendFailed`.

    Without an id, the identity fences nobody; brokers recognise repeated batches by it.
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
    """Ends all appending by the former owners of the ids; records that they have appended stay.

    Returns the new identities, in the order of the ids. An appender with such an identity can append until the next
    fence. Raises `TimeoutError`, after which some of the ids may be fenced; `ConfigurationError` and `AppendFailed` if
    the broker refuses.
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
    """The open transaction of `identity`; it has records in `partitions`.

    It is committed now and then. Its only purpose is fencing: readers see records at once, but the owner cannot append
    any more once another process has initialised the id.
    """

    def __init__(self, session: KafkaSession, transactional_id: str, identity: ProducerIdentity) -> None:
        self.transactional_id = transactional_id
        self.partitions: set[tuple[str, int]] = set()
        self._identity = identity
        self._coordinator = Coordinator(session, transactional_id)
        self._adding = asyncio.Lock()

    async def add(self, partitions: Iterable[tuple[str, int]]) -> None:
        """Adds partitions, before their first records are sent. Raises `Fenced` and `AppendFailed`."""
        new = set(partitions) - self.partitions
        if not new:
            return
        by_topic: defaultdict[str, list[int]] = defaultdict(list)
        for topic, partition in sorted(new):
            by_topic[topic].append(partition)
        request = AddPartitionsToTxnRequest(self.transactional_id, *self._identity, list(by_topic.items()))
        # A coordinator takes one such request at a time.
        async with self._adding:
            while True:
                answer = await self._coordinator.ask(request)
                codes = {code for _, partitions in answer.errors for _, code in partitions} - {NO_ERROR}
                # A permanent error decides; because of it the other partitions were not tried.
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
    """The transaction coordinator of a transactional id, also after it moves; any broker without an id."""

    def __init__(self, session: KafkaSession, transactional_id: str | None) -> None:
        self._session = session
        self._transactional_id = transactional_id
        self._node: int | None = None

    async def ask(self, request: Any) -> Any:
        """The answer to a request, which is repeated until a broker gives one."""
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
        """Whether a request failed for now; then True, after a pause. Raises `Fenced` and `AppendFailed`."""
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
