"""Where the Kafka client's bulk loads go: a chunk is one request to one slot, named, so that it may be sent again."""

from __future__ import annotations

from typing import Any, Final

from styx.client.base import check_key
from styx.client.kafka.requester import Requester
from styx.client.kafka.routing import Router
from styx.client.load import Chunk, LoadTarget, chunk_bytes_max, split_pair, unfit
from styx.errors import UnsupportedValue
from styx.model.bulk_load import encode_pair, load_request
from styx.model.operator import Operator
from styx.model.partitioning import Key
from styx.values.codec import encode_any

LOAD_ATTEMPTS_MAX: Final = 5
"""How often one chunk is sent; its name is its idempotency key."""


class KafkaLoadTarget(LoadTarget):
    """Loads into the operator `name`. `declared` None: its state type is unknown here, and the worker checks values."""

    attempts_max = LOAD_ATTEMPTS_MAX

    def __init__(
        self,
        requester: Requester,
        router: Router,
        declared: Operator | None,
        name: str,
        replace: bool,
        timeout: float,
    ) -> None:
        self.operator = name
        self.bytes_max = chunk_bytes_max(requester.limits)
        self._requester = requester
        self._router = router
        self._declared = declared
        self._replace = replace
        self._timeout = timeout

    def place(self, pair: Any) -> tuple[int, Key, bytes]:
        """As `LoadTarget.place`."""
        key, value = split_pair(pair)
        declared = self._declared
        checked, slot = self._router.place(declared or self.operator, check_key(self.operator, key))
        try:
            state = encode_any(value, "the value") if declared is None else declared.encode_state(value)
        except UnsupportedValue as error:
            raise unfit(self.operator, checked, error) from None
        return slot, checked, encode_pair(checked, state)

    async def send(self, chunk: Chunk) -> None:
        """As `LoadTarget.send`."""
        requester = self._requester
        request = load_request(
            requester.next_request_id(), self.operator, chunk.keys[0], chunk.pairs, self._replace, chunk.name
        )
        (await requester.submit(request, chunk.group, self._timeout)).unwrap()
