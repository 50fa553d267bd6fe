"""A request on its way into the log: its key checked, its slot found, the record encoded and within the limit of bytes.

All that send requests make them here: the embedded client and the Kafka client, and the gateway in front of either.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Mapping
from itertools import count
from typing import Any, NamedTuple

import msgspec

from styx.errors import BadArguments, RequestRejected, UnsupportedValue
from styx.messages import Request, encode_request
from styx.model.app import App
from styx.model.operator import Operator
from styx.model.partitioning import Key, KeySpace
from styx.values.codec import encode_any

_encode = msgspec.msgpack.Encoder().encode


class Placed(NamedTuple):
    """The encoded request and the slot of its key. `repeatable`: it has an idempotency key, so sending it twice runs it
    once.
    """

    request_id: str
    slot: int
    payload: bytes
    repeatable: bool


class Router:
    """Knows where the keys of one app's operators live: in their `spaces`, over `n_slots` slots. Under names such as
    `order*` are those of the numbers of their partitions.
    """

    def __init__(self, spaces: Mapping[str, KeySpace], n_slots: int) -> None:
        self._spaces = spaces
        self._n_slots = n_slots

    def place(self, operator: Operator | str, key: Any, function: str = "") -> tuple[Key, int]:
        """The checked key and its slot: `key` is a checked one for an `Operator`, and is checked here for a name.
        `function` is what the request is for.

        Raises `BadKey`. What the app does not have goes to slot 0: the worker there rejects it, so that it has an
        ordinary reply.
        """
        if isinstance(operator, Operator):
            return key, operator.key_space.slot_of(key, self._n_slots)
        keys = self._spaces.get(operator)
        if keys is None:
            return key, 0
        checked = keys.check(key)
        return checked, keys.slot_of(checked, self._n_slots)


class AppRouter(Router):
    """Places by the code of the app."""

    def __init__(self, app: App, n_slots: int) -> None:
        spaces = {name: operator.key_space for name, operator in app.operators.items()}
        super().__init__(
            spaces | {one.partitions.name: one.partitions.numbers for one in app.operators.values()}, n_slots
        )


class RequestMaker:
    """Makes the requests of one engine or one connection to a cluster; their replies come in partition `reply_to`."""

    __slots__ = ("_bytes_max", "_ids", "_place", "_reply_to")

    def __init__(self, router: Router, bytes_max: int, reply_to: int = 0) -> None:
        self._place = router.place
        self._bytes_max = bytes_max
        self._reply_to = reply_to
        self._ids = request_ids()

    def make(
        self,
        operator: Operator | str,
        key: Any,
        function: str,
        params: bytes,
        idempotency_key: str = "",
        request_id: str = "",
    ) -> Placed:
        """A request for `function` with encoded arguments, under an id of its own if it is given none. `operator` and
        `key` are as in `Router.place`.

        Raises `BadKey`, `BadArguments` for what cannot be encoded, and `RequestRejected` (`too_large`).
        """
        key, slot = self._place(operator, key, function)  # a tuple is encoded as the list that a `Request` has
        name = operator.name if isinstance(operator, Operator) else operator
        request_id = request_id or next(self._ids)
        try:
            payload = encode_request(Request(request_id, name, key, function, params, idempotency_key, self._reply_to))
        except (TypeError, ValueError, OverflowError, RecursionError) as error:
            raise BadArguments(f"the request cannot be encoded: {error}") from None
        if len(payload) > self._bytes_max:
            raise RequestRejected(
                "too_large", f"the request has {len(payload)} bytes; the limit is {self._bytes_max}: send less"
            )
        return Placed(request_id, slot, payload, idempotency_key != "")


def request_ids() -> Iterator[str]:
    """Ids that no other process and no other start gives: request ids meet in one replies stream."""
    prefix = secrets.token_hex(8)
    return (f"{prefix}-{number:x}" for number in count(1))


def encode_arguments(args: tuple[Any, ...] | dict[str, Any], what: str = "the arguments") -> bytes:
    """Arguments, positional or by name, as a request carries them; raises `BadArguments`, which begins with `what`."""
    try:
        return _encode(args)
    except Exception:  # noqa: BLE001 - `encode_any` knows which of them are the arguments' fault, and what to say
        try:
            return encode_any(args, what)
        except UnsupportedValue as error:
            raise BadArguments(str(error)) from None
