"""From request records to transactions: what runs, what is rejected at once, and what repeats an earlier request.

A record that cannot be decoded is skipped and reported; it costs its TID and nothing else. Never runs a function.
Paper sections 5.1 and 7.2.
"""

from __future__ import annotations

import msgspec

from styx.app import App
from styx.errors import InTransactionError, WrongPartition, describe
from styx.execution import ErrorTriple, rejection, resolve_request
from styx.limits import Limits
from styx.messages import Request, decode_reply, decode_request
from styx.sequencer.arrival import Arrival
from styx.worker.events import ReportPoison
from styx.worker.messages import Failure
from styx.worker.reply_memory import ReplyMemory
from styx.worker.root import RootTransaction

_encode = msgspec.msgpack.Encoder().encode


class Admission:
    """Makes a slot's arrivals into roots; `waiting` are the unfinished transactions with an idempotency key."""

    def __init__(self, app: App, limits: Limits, n_slots: int) -> None:
        self._app = app
        self._resolved = app.resolved
        self._limits = limits
        self._n_slots = n_slots
        self._small_max = min(limits.request_bytes_max, limits.value_bytes_max)
        self.waiting: dict[tuple[int, bytes], RootTransaction] = {}

    def admit(
        self, slot: int, tid: int, arrival: Arrival, memory: ReplyMemory
    ) -> RootTransaction | ReportPoison | None:
        """A transaction, or the report of a record that is none; None for a repetition of an unfinished request.

        A repetition of a finished one is a transaction that is done already, with the first one's reply as
        `remembered`.
        """
        payload = arrival.payload
        try:
            request = decode_request(payload)
        except (msgspec.DecodeError, ValueError, RecursionError) as error:
            return ReportPoison(slot, arrival.offset, f"not a request: {error}")
        root = RootTransaction(tid, slot, arrival.offset, arrival.timestamp_us, payload, request)
        try:
            resolved = self._resolved.get((request.operator, request.function))
            operator, _ = resolved or self._app.resolve(request.operator, request.function)
            check = operator.key_type.check
            entity = check(request.key, request.operator)
            usual = operator.slot_of(entity, self._n_slots) == slot and len(payload) <= self._small_max
        except InTransactionError:
            usual = False
        if not usual:
            # `_refused` says what is wrong, if anything is.
            refused = self._refused(slot, request, len(payload))
            if refused is not None:
                root.done = True
                root.failure = Failure(b"", b"", False, *refused)
                return root
        if request.idempotency_key:
            key = idempotency_id(request)
            earlier = self.waiting.get((slot, key))
            if earlier is not None:
                if earlier.repeats is None:
                    earlier.repeats = []
                earlier.repeats.append((request.request_id, tid, request.reply_to))
                return None
            root.idempotency = key
            known = memory.recall(key)
            if known is not None:
                root.done = True
                root.remembered = decode_reply(known)
            else:
                self.waiting[slot, key] = root
        return root

    def readmit(self, root: RootTransaction) -> None:
        """A transaction that a snapshot held goes on, unless the app of today does not have what it is for."""
        refused = self._refused(root.slot, root.request, len(root.payload))
        if refused is not None:
            root.refused = Failure(b"", b"", False, *refused)
        elif root.request.idempotency_key:
            root.idempotency = idempotency_id(root.request)
            self.waiting[root.slot, root.idempotency] = root

    def ended(self, root: RootTransaction) -> None:
        """Its reply is given: repetitions find it remembered from now on."""
        if root.idempotency is not None:
            self.waiting.pop((root.slot, root.idempotency), None)

    def _refused(self, slot: int, request: Request, size: int) -> ErrorTriple | None:
        try:
            target = resolve_request(self._app, request, self._limits, self._n_slots)
            if target.slot != slot:
                raise WrongPartition(
                    f"the request stands in partition {slot} of the requests topic, but its key belongs to "
                    f"partition {target.slot}"
                )
        except InTransactionError as error:
            return rejection(error)
        except Exception as error:  # noqa: BLE001 - a request costs only itself
            return ("bad_request", *describe(error))
        if size > self._limits.request_bytes_max:
            text = f"the request has {size} bytes; the limit is {self._limits.request_bytes_max}"
            return ("too_large", "ValueTooLarge", text)
        return None


def idempotency_id(request: Request) -> bytes:
    """What an idempotency key is remembered under: it belongs to one entity."""
    return _encode((request.operator, request.key, request.idempotency_key))
