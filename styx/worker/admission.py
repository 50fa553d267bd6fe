"""From request records to transactions: which requests run, which are rejected at once, and which repeat an earlier
request.

A record that cannot be decoded is skipped and reported; it costs only its TID. Paper sections 5.1 and 7.2.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import msgspec
from msgspec.structs import astuple

from styx.errors import FunctionTooLong, InTransactionError, WrongPartition, describe
from styx.messages import Request, decode_reply, decode_request
from styx.model.app import App
from styx.model.execution import ErrorTriple, Target, rejection, resolve_request
from styx.model.function_spec import FunctionSpec
from styx.model.limits import Limits
from styx.protocol.frames import Failure
from styx.protocol.manifest import PendingTransaction
from styx.sequencer.sequencer import Recorded
from styx.worker.events import ReportPoison
from styx.worker.invocation import Running
from styx.worker.reply_memory import ReplyMemory
from styx.worker.root import RootTransaction
from styx.worker.standing import Placing

UNPLACED: Final = "bad_arguments"
"""The error code of a request whose `partition_key` ran too long (`FunctionTooLong`), also in the log's verdicts."""
TOO_LONG: Final = FunctionTooLong.__name__
_encode = msgspec.msgpack.Encoder().encode


class Admission:
    """Makes transactions of a slot's requests; `waiting` are the unfinished transactions with an idempotency key.

    `running` records which `partition_key` of the app runs, for the watchdog. `verdicts` are those of a recorded epoch.
    """

    def __init__(self, app: App, limits: Limits, n_slots: int, running: Running | None = None) -> None:
        self.verdicts: Mapping[int, ErrorTriple | None] = {}
        told = Running() if running is None else running
        self._placing = Placing(app, limits, n_slots, lambda: told)
        self._app = app
        self._first = app.first
        self._limits = limits
        self._n_slots = n_slots
        self._small_max = min(limits.request_bytes_max, limits.value_bytes_max)
        self.waiting: dict[tuple[int, bytes], RootTransaction] = {}

    def admit(
        self, slot: int, tid: int, recorded: Recorded, memory: ReplyMemory
    ) -> RootTransaction | ReportPoison | None:
        """Makes a transaction of a request's record. Returns the report of a record that cannot be decoded instead, and
        None for a request that repeats an unfinished one.

        A request that repeats a finished one becomes a transaction that is done already; its `remembered` is the first
        request's reply.
        """
        offset, timestamp_us, payload = recorded
        try:
            request = decode_request(payload)
        except (msgspec.DecodeError, ValueError, RecursionError) as error:
            return ReportPoison(slot, offset, f"not a request: {error}")
        fields: tuple[Any, ...] = astuple(request)  # at once: compiled code reaches a Struct's fields slowly
        request_id, operator, key, name, params, idempotency_key, reply_to = fields
        function: FunctionSpec | None = None
        failure: Failure | None = None
        usual = False
        try:
            function = self._first.get((operator, name)) or self._app.resolve_first(operator, name)
            keys = function.keys
            key = keys.check(key)
            if keys.partition_key is None:
                there = keys.slot_of(key, self._n_slots)
            else:
                there = -1 if tid in self.verdicts else self._placing.slot_of(function, key)
            usual = there == slot and len(payload) <= self._small_max
        except FunctionTooLong as error:
            failure, function = _unplaced(error), None
        except InTransactionError:
            pass
        if not usual and failure is None:
            # `_target` returns the error of a wrong request.
            target = self._target(slot, request, len(payload), tid)
            if isinstance(target, Failure):
                failure, function = target, None
            else:
                function, key = target.function, target.key
        root = RootTransaction(tid, slot, offset, timestamp_us, payload, request_id, reply_to, function, key, params)
        if failure is not None:
            root.done = True
            root.failure = failure
            root.cut = failure.type == TOO_LONG and tid not in self.verdicts
            return root
        if idempotency_key:
            repeated = idempotency_id(request)
            earlier = self.waiting.get((slot, repeated))
            if earlier is not None:
                if earlier.repeats is None:
                    earlier.repeats = []
                earlier.repeats.append((request_id, tid, reply_to))
                return None
            root.idempotency = repeated
            known = memory.recall(repeated)
            if known is not None:
                root.done = True
                root.remembered = decode_reply(known)
            else:
                self.waiting[slot, repeated] = root
        return root

    def readmit(self, slot: int, pending: PendingTransaction) -> RootTransaction:
        """Continues a transaction from a snapshot. Refuses it if the present app lacks its operator or function."""
        request, payload = decode_request(pending.payload), pending.payload
        target = self._target(slot, request, len(payload), -1)
        root = RootTransaction(
            pending.tid,
            slot,
            pending.offset,
            pending.timestamp_us,
            payload,
            request.request_id,
            request.reply_to,
            None if isinstance(target, Failure) else target.function,
            None if isinstance(target, Failure) else target.key,
            request.params,
        )
        if isinstance(target, Failure):
            root.refused = target
        elif request.idempotency_key:
            root.idempotency = idempotency_id(request)
            self.waiting[slot, root.idempotency] = root
        return root

    def ended(self, root: RootTransaction) -> None:
        """Forgets an answered transaction: from now on the reply memory answers repetitions of its request."""
        if root.idempotency is not None:
            self.waiting.pop((root.slot, root.idempotency), None)

    def _target(self, slot: int, request: Request, size: int, tid: int) -> Target | Failure:
        verdict = self.verdicts.get(tid)
        if verdict is not None and verdict[:2] == (UNPLACED, TOO_LONG):
            return Failure(b"", b"", False, *verdict)
        try:
            target = resolve_request(self._app, request, self._limits, self._n_slots, self._placing.slot_of)
            if target.slot != slot:
                raise WrongPartition(
                    f"the request stands in partition {slot} of the requests topic, but its key belongs to "
                    f"partition {target.slot}"
                )
        except FunctionTooLong as error:
            return _unplaced(error)
        except InTransactionError as error:
            return Failure(b"", b"", False, *rejection(error))
        except BaseException as error:  # noqa: BLE001 - a request costs only itself
            return Failure(b"", b"", False, "bad_request", *describe(error))
        if size > self._limits.request_bytes_max:
            text = f"the request has {size} bytes; the limit is {self._limits.request_bytes_max}"
            return Failure(b"", b"", False, "too_large", "ValueTooLarge", text)
        return target


def _unplaced(error: FunctionTooLong) -> Failure:
    return Failure(b"", b"", False, UNPLACED, *describe(error))


def idempotency_id(request: Request) -> bytes:
    """The key of the reply memory: an idempotency key with the entity it belongs to."""
    return _encode((request.operator, request.key, request.idempotency_key))
