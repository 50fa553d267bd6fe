"""The history checker: were these replies, and this final state, produced by some engine that runs serially?

Replays every request in the public order (epoch, phase, transaction id) against a dictionary and compares each reply
byte by byte, then the state. It trusts only the requests, and never looks inside an engine. It does not check that the
serial order respects real time, because replies carry no times.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager, nullcontext
from hashlib import blake2b
from typing import Any, Final

import msgspec

from styx.errors import FunctionTooLong, NondeterministicFunction
from styx.messages import EventRecord, ReplyRecord, Request
from styx.model.agenda import decode_dead, decode_entry
from styx.model.app import App
from styx.model.cron import moment_us
from styx.model.delivery import UNPLACED, DeliveryName, delivery_name, delivery_request, put_off_request
from styx.model.execution import ErrorTriple, Outcome
from styx.model.limits import Limits
from styx.model.partitioning import Key
from styx.model.sequence import decode_number
from styx.model.table_names import holds_agenda, holds_dead, holds_sequences
from styx.state.due_calls import TOGETHER_MAX
from styx.testing.reads import ReadChecks, Seen, WrongRead
from styx.testing.serial import Entity, ExternalResult, MissingExternal, Place, SerialReference, State
from styx.values.codec import decode_plain, shown

PREVIOUS_SHOWN_MAX: Final = 5
"""Earlier transactions on the same entities that an explanation lists."""
DIFFERENCES_SHOWN_MAX: Final = 10
"""Entities, or requests without a reply, that an explanation lists."""

READ_ONLY_PHASE: Final = 0
"""In this phase of an epoch nothing is written."""

Requests = Mapping[str, tuple[Request, int]]
"""By request id: the request and the time it entered the log, in microseconds since 1970."""

_encode_entity = msgspec.msgpack.Encoder().encode


class SerializabilityViolation(AssertionError):
    """The replies or the state are not those of the serial execution; the message explains the first
    difference.
    """


class HistoryReport(msgspec.Struct, frozen=True, kw_only=True):
    """The counts of a checked history.

    `unverified` aborts needed an external function's result that was not given; `unanswered` requests had no
    reply. `state` is the replay's final state and `state_hash` its hash. `emitted` are the events of all committed
    transactions, in serial order.
    """

    committed: int
    aborted: int
    rejected: int
    repetitions: int
    unverified: int
    unanswered: int
    state: State
    state_hash: str
    emitted: list[EventRecord]

    @property
    def transactions(self) -> int:
        """Transactions replayed; repetitions run nothing and do not count."""
        return self.committed + self.aborted + self.rejected


def state_hash(state: Mapping[Entity, bytes]) -> str:
    """32 hexadecimal digits that are equal exactly for equal states, whatever order they were built in."""
    digest = blake2b(digest_size=16)
    for name, data in sorted((_encode_entity(entity), data) for entity, data in state.items()):
        # Lengths first: otherwise bytes could move from one field to the next unseen.
        digest.update(len(name).to_bytes(4, "big") + len(data).to_bytes(4, "big") + name + data)
    return digest.hexdigest()


def check_history(
    app: App,
    requests: Requests,
    replies: Iterable[ReplyRecord],
    final_state: Mapping[Entity, bytes] | None = None,
    *,
    initial_state: Mapping[Entity, bytes] | None = None,
    limits: Limits | None = None,
    n_slots: int = 4,
    externals: Mapping[bytes, ExternalResult] | None = None,
    versions: Mapping[int, App] | None = None,
    complete: bool = False,
    around: Callable[[bool], AbstractContextManager[object]] = nullcontext,
    reads: Iterable[Seen] = (),
) -> HistoryReport:
    """Checks a whole history from `initial_state` (default: empty) on; `complete` also asks for a reply to
    each request.

    A read-only function's reply must be of phase 0, and no other transaction may commit in that phase.

    `final_state` None: the state is not compared. `limits` and `n_slots` are the deployment's. `externals` are the
    logged results of external functions by key; an abort that needs one that is missing is counted as
    unverified. `versions` are those of the app by the first epoch that ran on them, where it was replaced. `around` is
    entered for each transaction that runs, and told whether its reply says that it ran too long: for an app of tests
    that asks whether it does. `reads` are what was seen of the state outside the log.

    Raises `SerializabilityViolation` with the first difference in serial order.
    """
    reference = SerialReference(app, limits, n_slots, externals)
    reference.begin_with(initial_state or {})
    history = _History(app, requests, list(replies), versions, around, ReadChecks(reads))
    report = history.replay(reference)
    if final_state is not None and final_state != reference.state:
        raise SerializabilityViolation(history.explain_state(reference, final_state, initial_state or {}))
    if complete and report.unanswered:
        raise SerializabilityViolation(history.explain_unanswered())
    return report


class _History:
    """Requests and replies, indexed; finds contradictions among the replies themselves at once."""

    def __init__(
        self,
        app: App,
        requests: Requests,
        replies: list[ReplyRecord],
        versions: Mapping[int, App] | None,
        around: Callable[[bool], AbstractContextManager[object]],
        reads: ReadChecks,
    ) -> None:
        self.app = app
        self._reads = reads
        self._around = around
        self._versions = versions or {}
        self._begun = -1
        self.requests = dict(requests)  # and the deliveries that the replies tell of
        self.answered: dict[str, ReplyRecord] = {}
        self.originals: dict[int, ReplyRecord] = {}
        self.repetitions: list[ReplyRecord] = []
        by_sequence: dict[int, ReplyRecord] = {}
        for reply in replies:
            self._check_unique(reply, by_sequence.get(reply.sequence) or self.answered.get(reply.request_id))
            by_sequence[reply.sequence] = self.answered[reply.request_id] = reply
            if reply.request_id not in requests and delivery_name(reply.request_id) is None:
                raise SerializabilityViolation(f"a reply to no known request: {_reply_text(reply)}")
            if reply.sequence == reply.tid:
                self.originals[reply.tid] = reply
            else:
                self.repetitions.append(reply)
        self.order = sorted(self.originals.values(), key=_place)

    def _check_unique(self, reply: ReplyRecord, first: ReplyRecord | None) -> None:
        if first is not None:
            kind = "given twice" if first == reply else "contradicted"
            raise SerializabilityViolation(
                f"a reply was {kind}:\n  first  {_reply_text(first)}\n  second {_reply_text(reply)}"
            )

    def replay(self, reference: SerialReference) -> HistoryReport:
        initial = dict(reference.state)
        committed = aborted = rejected = unverified = 0
        for index, reply in enumerate(self.order):
            self._check_reads(reference, reply.epoch)
            try:
                expected = self._run(reference, reply)
            except MissingExternal:
                # The external function raised: only its engine saw that. Such a transaction changed nothing.
                if reply.error is None or reply.error[0] != "aborted":
                    raise
                unverified += 1
                aborted += 1
                continue
            if reference.lanes.misplaced is not None:
                raise SerializabilityViolation(
                    "in a lane, {} was given behind {} in the serial order: {}".format(
                        *reference.lanes.misplaced, _reply_text(reply)
                    )
                )
            if not _agrees(reply, expected):
                raise SerializabilityViolation(self._explain_reply(reference, index, expected, initial))
            self._check_phase(reply, reference.read_only)
            if expected.error is None:
                committed += 1
            elif expected.error[0] == "aborted":
                aborted += 1
            else:
                rejected += 1
        self._check_reads(reference, None)
        self._begin_versions(reference, max(self._versions, default=-1))
        self._check_repetitions()
        self._check_once()
        return HistoryReport(
            committed=committed,
            aborted=aborted,
            rejected=rejected,
            repetitions=len(self.repetitions),
            unverified=unverified,
            unanswered=len(self.requests) - len(self.answered),
            state=reference.state,
            state_hash=state_hash(reference.state),
            emitted=reference.emitted,
        )

    def _check_reads(self, reference: SerialReference, epoch: int | None) -> None:
        try:
            self._reads.before(reference, epoch)
        except WrongRead as error:
            raise SerializabilityViolation(str(error)) from None

    def _check_phase(self, reply: ReplyRecord, read_only: bool | None) -> None:
        if read_only and reply.phase != READ_ONLY_PHASE:
            raise SerializabilityViolation(f"a read-only function has another phase than 0:\n  {self._line(reply)}")
        if read_only is False and reply.phase == READ_ONLY_PHASE and reply.error is None:
            raise SerializabilityViolation(
                f"a function that may write has committed in phase 0:\n  {self._line(reply)}"
            )

    def _run(self, reference: SerialReference, reply: ReplyRecord) -> Outcome:
        """The request's outcome on the version of the app that its epoch ran on."""
        self._begin_versions(reference, reply.epoch)
        delivery = self._delivery(reference, reply)
        request, timestamp_us = self.requests[reply.request_id]
        place = Place(reply.epoch, reply.phase, delivery)
        cut = reply.error is not None and reply.error[1] == FunctionTooLong.__name__
        # What may end by itself was ended if the reply says so: time decides that, and nothing else.
        with self._around(cut):
            return reference.run(reply.tid, timestamp_us, request, place)

    def _delivery(self, reference: SerialReference, reply: ReplyRecord) -> bool:
        """Whether the reply is of a delivery; if so, its request is made. No engine's log has it: the reply names a
        call, which must have been given before.
        """
        name = delivery_name(reply.request_id)
        if name is None:
            return False
        if name.call_id not in reference.given:
            raise SerializabilityViolation(f"a delivery of a call that nobody has given: {_reply_text(reply)}")
        before = reference.lanes.before(name.call_id)
        if before is not None:
            raise SerializabilityViolation(
                f"a delivery has overtaken {before}, which was given before it in its lane: {_reply_text(reply)}"
            )
        table, key = reference.given[name.call_id]
        behind = self._behind(reference, reply, name)
        request = delivery_request(table, key, name.call_id, name.now_us, behind)  # type: ignore[arg-type]  # an entry's key
        if name.puts_off:
            _, kind, message, *rest = decode_plain(reply.result)
            request = put_off_request(request, name.now_us, (kind, message), rest[0] if behind else UNPLACED)
        stored = None if name.puts_off else reference.state.get((table, key))
        time_us = name.now_us if stored is None else moment_us(decode_entry(stored), name.now_us)
        self.requests[reply.request_id] = (request, time_us)
        return True

    def _behind(self, reference: SerialReference, reply: ReplyRecord, name: DeliveryName) -> tuple[str, ...]:
        """The calls that are delivered together with the first one: those that follow it in its lane."""
        if name.together == 1:
            return ()
        found = reference.lanes.together(name.call_id, name.together)
        if found[:1] != [name.call_id] or len(found) < name.together or name.together > TOGETHER_MAX:
            raise SerializabilityViolation(
                f"a delivery of {name.together} calls together, of which {len(found)} stand in their lane; "
                f"{TOGETHER_MAX} are the limit: {_reply_text(reply)}"
            )
        return tuple(found[1:])

    def _begin_versions(self, reference: SerialReference, epoch: int) -> None:
        """Begins the versions up to `epoch`, one after the other; each converts the state that it has to."""
        for began in sorted(self._versions):
            if self._begun < began <= epoch:
                try:
                    reference.begin_version(self._versions[began])
                except ValueError as error:
                    raise SerializabilityViolation(f"the version of epoch {began} loses an entity: {error}") from None
        self._begun = max(self._begun, epoch)

    # Idempotent requests -------------------------------------------------------------------------------

    def _check_repetitions(self) -> None:
        for reply in self.repetitions:
            first = self.originals.get(reply.tid)
            if first is None:
                raise SerializabilityViolation(f"a repetition of no known reply: {_reply_text(reply)}")
            same_key = self._idempotency_key(reply) == self._idempotency_key(first) != ""
            same_reply = (*_place(reply), reply.result, reply.error) == (*_place(first), first.result, first.error)
            if not (same_key and same_reply):
                what = "differs from the first reply" if same_key else "has another idempotency key"
                raise SerializabilityViolation(
                    f"a repetition {what}:\n  first      {_reply_text(first)}\n  repetition {_reply_text(reply)}"
                )

    def _idempotency_key(self, reply: ReplyRecord) -> str:
        return self.requests[reply.request_id][0].idempotency_key

    def _check_once(self) -> None:
        """The same request with the same idempotency key must not have run twice."""
        ran: dict[tuple[Any, ...], ReplyRecord] = {}
        for reply in self.order:
            request = self.requests[reply.request_id][0]
            if not request.idempotency_key or (reply.error is not None and reply.error[0] != "aborted"):
                continue
            key = tuple(request.key) if isinstance(request.key, list) else request.key
            identity = (request.operator, key, request.function, request.params, request.idempotency_key)
            first = ran.setdefault(identity, reply)
            if first is not reply:
                raise SerializabilityViolation(
                    f"an idempotent request ran twice:\n  first  {self._line(first)}\n  second {self._line(reply)}"
                )

    # Explanations --------------------------------------------------------------------------------------

    def _explain_reply(
        self, reference: SerialReference, index: int, expected: Outcome, initial: Mapping[Entity, bytes]
    ) -> str:
        reply = self.order[index]
        touched = list(dict.fromkeys(reference.entities))
        lines = [
            "the reply is not the serial execution's.",
            f"  request  {_request_text(*self.requests[reply.request_id])}",
            f"  place    {_place_text(reply)}, reply {index + 1} of {len(self.order)}",
            f"  expected {_outcome_text(expected.result, expected.error)}",
            f"  got      {_outcome_text(reply.result, reply.error)}",
            f"  it ran on {', '.join(map(_entity_text, touched)) or 'nothing'}",
            *self._previous(reference, initial, set(touched), index),
        ]
        return "\n".join(lines)

    def explain_state(
        self, reference: SerialReference, final: Mapping[Entity, bytes], initial: Mapping[Entity, bytes]
    ) -> str:
        """Why `final` is not the replay's state."""
        expected = dict(reference.state)
        differing = [e for e in {**expected, **final} if expected.get(e) != final.get(e)]
        differing.sort(key=_encode_entity)
        lines = [f"the final state is not the serial execution's: {len(differing)} entities differ."]
        for entity in differing[:DIFFERENCES_SHOWN_MAX]:
            lines.append(
                f"  {_entity_text(entity)}: expected {self._state_text(entity, expected.get(entity))}, "
                f"got {self._state_text(entity, final.get(entity))}"
            )
        if len(differing) > DIFFERENCES_SHOWN_MAX:
            lines.append(f"  … and {len(differing) - DIFFERENCES_SHOWN_MAX} more")
        lines += self._previous(reference, initial, {differing[0]}, len(self.order))
        return "\n".join(lines)

    def explain_unanswered(self) -> str:
        """Which requests lack a reply."""
        missing = [request_id for request_id in self.requests if request_id not in self.answered]
        lines = [f"{len(missing)} of {len(self.requests)} requests have no reply:"]
        shown_ids = missing[:DIFFERENCES_SHOWN_MAX]
        lines += [f"  {_request_text(*self.requests[request_id])}" for request_id in shown_ids]
        return "\n".join(lines)

    def _previous(
        self, reference: SerialReference, initial: Mapping[Entity, bytes], entities: set[Entity], end: int
    ) -> list[str]:
        """The last transactions before position `end` that ran on one of `entities`, found by replaying
        again.
        """
        again = SerialReference(self.app, reference.limits, reference.n_slots, reference.externals)
        self._begun = -1  # from the first version on
        again.begin_with(initial)
        found: deque[str] = deque(maxlen=PREVIOUS_SHOWN_MAX)
        for reply in self.order[:end]:
            try:
                self._run(again, reply)
            except MissingExternal:
                continue
            if not entities.isdisjoint(again.entities):
                found.append(f"    {self._line(reply)}")
        return ["  before it, on the same entities:", *found] if found else ["  nothing before it ran there"]

    def _line(self, reply: ReplyRecord) -> str:
        request = _request_text(*self.requests[reply.request_id])
        return f"{_place_text(reply)}: {request} -> {_outcome_text(reply.result, reply.error)}"

    def _state_text(self, entity: Entity, data: bytes | None) -> str:
        if data is None:
            return "nothing"
        try:
            if holds_sequences(entity[0]):
                return shown(decode_number(data))
            if holds_agenda(entity[0]):
                return shown(decode_entry(data))
            if holds_dead(entity[0]):
                return shown(decode_dead(data))
            table = self.app.table(entity[0])
            decode = self.app.operator(entity[0]).decode_state if table is None else table.row_type.decode
            return shown(decode(data))
        except Exception:  # noqa: BLE001 - damaged state is what is being reported
            return f"undecodable {shown(data)}"


def _place(reply: ReplyRecord) -> tuple[int, int, int]:
    return (reply.epoch, reply.phase, reply.tid)


def _agrees(reply: ReplyRecord, expected: Outcome) -> bool:
    if expected.error is None:
        return reply.error is None and reply.result == expected.result
    if reply.error is None:
        return False
    if expected.error[1] == NondeterministicFunction.__name__:
        # Its message tells what was awaited, which can depend on whether an event loop runs around it.
        return tuple(reply.error[:2]) == expected.error[:2]
    return tuple(reply.error) == expected.error


def _place_text(reply: ReplyRecord) -> str:
    return f"epoch {reply.epoch} phase {reply.phase} tid {reply.tid}"


def _reply_text(reply: ReplyRecord) -> str:
    outcome = _outcome_text(reply.result, reply.error)
    return f"{reply.request_id} (sequence {reply.sequence}) at {_place_text(reply)}: {outcome}"


def _outcome_text(result: bytes | None, error: ErrorTriple | None) -> str:
    return f"result {_decoded(result)}" if error is None else f"{error[0]}: {error[1]}: {error[2]}"


def _request_text(request: Request, timestamp_us: int) -> str:
    call = f"{request.operator}[{shown(request.key)}].{request.function}({_decoded(request.params)})"
    return f"{request.request_id} {call} at {timestamp_us} µs"


def _entity_text(entity: tuple[str, Key]) -> str:
    return f"{entity[0]}[{shown(entity[1])}]"


def _decoded(data: bytes | None) -> str:
    try:
        return shown(msgspec.msgpack.decode(data or b"\xc0"))
    except (msgspec.DecodeError, ValueError):
        return f"undecodable {shown(data)}"
