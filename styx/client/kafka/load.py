"""Where the Kafka client's bulk loads go: a chunk is one request to one slot, named, so that it may be sent again."""

from __future__ import annotations

from typing import Any, Final

from styx.client.base import check_key
from styx.client.kafka.requester import Requester
from styx.client.load import Chunk, LoadTarget, chunk_bytes_max, split_pair, unfit
from styx.errors import UnsupportedValue
from styx.model.bulk_load import encode_pair, load_arguments
from styx.model.function_spec import LOAD_FUNCTION
from styx.model.operator import Operator
from styx.model.partitioning import Key
from styx.model.request import RequestMaker, Router
from styx.values.codec import encode_any

LOAD_ATTEMPTS_MAX: Final = 5
"""How often one chunk is sent; its name is its idempotency key."""


class KafkaLoadTarget(LoadTarget):
    """Loads into the operator `name`. `declared` None: its state type is unknown here, and the worker checks values."""

    attempts_max = LOAD_ATTEMPTS_MAX

    def __init__(
        self,
        requester: Requester,
        maker: RequestMaker,
        router: Router,
        declared: Operator | None,
        name: str,
        replace: bool,
        timeout: float,
    ) -> None:
        self.operator = name
        self.bytes_max = chunk_bytes_max(requester.limits)
        self._requester = requester
        self._maker = maker
        self._router = router
        self._declared = declared
        self._replace = replace
        self._timeout = timeout

    def place(self, pair: Any) -> tuple[int, Key, bytes]:
        """As `LoadTarget.place`."""
        key, value = split_pair(pair)
        declared = self._declared
        if declared is None:
            checked, slot = self._router.place(self.operator, check_key(self.operator, key))
        else:
            checked, slot = self._router.place(declared, declared.check_key(key))
        try:
            state = encode_any(value, "the value") if declared is None else declared.encode_state(value)
        except UnsupportedValue as error:
            raise unfit(self.operator, checked, error) from None
        return slot, checked, encode_pair(checked, state)

    async def send(self, chunk: Chunk) -> None:
        """As `LoadTarget.send`."""
        arguments = load_arguments(chunk.pairs, self._replace)
        request = self._maker.make(self._declared or self.operator, chunk.keys[0], LOAD_FUNCTION, arguments, chunk.name)
        (await self._requester.submit(request, self._timeout)).unwrap()
