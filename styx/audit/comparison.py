"""The comparison of a replay with what was recorded: replies and events epoch by epoch, the state slot by slot.

It counts all differences, and describes the first ones. Paper sections 7.1 and 7.4.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any, Final

import msgspec

from styx.audit.capture import unanswered
from styx.audit.case import Case, events_name
from styx.audit.matching import Matching
from styx.audit.records import read_records
from styx.audit.replay import Replayed
from styx.audit.transactions import EpochTransactions
from styx.audit.verdict import DIFFERS, EventDifference, ReplyDifference, StateDifference, Verdict
from styx.messages import EventRecord, ReplyRecord, decode_reply, encode_reply
from styx.model.app import App
from styx.model.event_record import epoch_of
from styx.protocol.manifest import PendingTransaction, SlotPart
from styx.state.slot_state import IDEMPOTENCY_TABLE, SlotState
from styx.state.table import NEWEST
from styx.values.codec import decode_plain, shown
from styx.worker.events import SlotContent
from styx.worker.given_replies import WORDED_DIFFERENTLY, causes

TOLD_MAX: Final = 10
"""Differences of each kind that are described; further ones are counted."""
_NOTHING: Final[Mapping[Any, bytes]] = {}

_event = msgspec.msgpack.Decoder(tuple[str, bytes]).decode


class Comparison:
    """Of one case; fills `verdict`."""

    def __init__(self, case: Case, directory: Path, app: App, verdict: Verdict) -> None:
        self._case = case
        self._app = app
        self._verdict = verdict
        self._directory = directory
        self._replies = Matching[int](partial(_replies_of, directory))
        self._events = Matching[str](partial(_events_of, directory))
        self._whole = True

    def epoch(self, epoch: int, given: Replayed, ended: EpochTransactions) -> None:
        """An epoch that was replayed. Raises `CannotJudge`."""
        verdict = self._verdict
        verdict.epochs += 1
        verdict.replies += len(given.replies)
        found = [each for reply in given.replies if (each := self._reply(reply, ended)) is not None]
        for missed in given.not_resumed:
            named, went_on = ended.named(missed.tid), "went on behind an external call"
            found.append(_difference(epoch, 1, missed.tid, "", named, went_on, "does not wait for it"))
        found.sort(key=lambda each: (each.epoch, each.phase, each.tid))
        verdict.reply_differences += len(found)
        verdict.first_replies += found[: TOLD_MAX - len(verdict.first_replies)]
        for event in given.events:
            self._compare_event(event)

    def broke_off(self, why: str) -> None:
        """The replay cannot go on, so what follows is not compared."""
        self._whole = False
        self._verdict.reason = why

    # Replies -----------------------------------------------------------------------------------------------

    def _reply(self, reply: ReplyRecord, ended: EpochTransactions) -> ReplyDifference | None:
        slot = (reply.sequence - 1) % self._case.n_slots
        record = self._replies.take(self._case.reply_partition(slot, reply.reply_to), reply.sequence)
        if record == encode_reply(reply):
            return None
        answered = None if record is None else decode_reply(record)
        if answered is not None and causes(answered, reply) == WORDED_DIFFERENTLY:
            self._verdict.worded += 1
            return None
        now, before = _outcome(reply), "" if answered is None else _outcome(answered)
        if answered is not None and now == before:
            now, before = f"{now} at {_place(reply)}", f"{before} at {_place(answered)}"
        named = ended.named(reply.tid)
        return _difference(reply.epoch, reply.phase, reply.tid, reply.request_id, named, before, now)

    def finish(self) -> None:
        """Behind the last epoch: what stands in the log, and was not given again."""
        if self._whole:
            self._compare_rest()
        verdict = self._verdict
        if verdict.differences or verdict.reason:
            verdict.outcome = DIFFERS

    def _compare_rest(self) -> None:
        verdict, case = self._verdict, self._case
        open_at_end = unanswered(case.after)
        for sequence, record in self._replies.rest(self._files("replies-")):
            if sequence not in open_at_end:
                reply = decode_reply(record)
                verdict.reply_differences += 1
                if len(verdict.first_replies) < TOLD_MAX:
                    place = reply.epoch, reply.phase, reply.tid
                    verdict.first_replies.append(_difference(*place, reply.request_id, "", _outcome(reply), ""))
        for its_id, json in self._events.rest(self._files("events-")):
            self._event_differs(-1, "", its_id, shown(json), "")

    def _files(self, prefix: str) -> list[str]:
        return sorted(file.name for file in self._directory.iterdir() if file.name.startswith(prefix))

    # Events ------------------------------------------------------------------------------------------------

    def _compare_event(self, event: EventRecord) -> None:
        if event.event not in self._case.events:
            return
        self._verdict.events += 1
        json = self._app.events[event.event].to_json(event.payload)
        recorded = self._events.take(events_name(event.event, event.slot), event.id)
        if recorded != json:
            told = "" if recorded is None else shown(recorded)
            self._event_differs(event.slot, event.event, event.id, told, shown(json))

    def _event_differs(self, slot: int, event: str, its_id: str, recorded: str, replayed: str) -> None:
        verdict = self._verdict
        verdict.event_differences += 1
        if len(verdict.first_events) < TOLD_MAX:
            its_id = f"{its_id} (epoch {epoch_of(its_id)})"
            verdict.first_events.append(
                EventDifference(slot=slot, event=event, id=its_id, recorded=recorded, replayed=replayed)
            )

    # State -------------------------------------------------------------------------------------------------

    def slot(self, part: SlotPart, stored: SlotState, replayed: SlotState, content: SlotContent | None) -> None:
        """The state of a slot at the end, and what is under way there."""
        for name in sorted({*stored.tables, *replayed.tables}):
            theirs, ours = _entries(stored, name), _entries(replayed, name)
            self._verdict.entries += len(theirs)
            if theirs != ours:
                self._compare_table(part.slot, name, theirs, ours)
        if content is not None:
            self._compare_rest_of(part, content)

    def _compare_table(self, slot: int, name: str, theirs: Mapping[Any, bytes], ours: Mapping[Any, bytes]) -> None:
        for key in sorted({*theirs, *ours}, key=repr):
            before, now = theirs.get(key), ours.get(key)
            if before != now and not (name == IDEMPOTENCY_TABLE and _worded(before, now)):
                table = "the remembered reply to" if name == IDEMPOTENCY_TABLE else name
                self._entry_differs(slot, table, shown(key), _value(before), _value(now))

    def _compare_rest_of(self, part: SlotPart, content: SlotContent) -> None:
        if (part.next_offset, part.passed_over) != (content.next_offset, content.passed_over):
            theirs, ours = _offsets(part), _offsets(content)
            self._entry_differs(part.slot, "", "the requests that are sequenced", theirs, ours)
        theirs_by, ours_by = _by_tid(part.pending), _by_tid(content.pending)
        for tid in sorted({*theirs_by, *ours_by}):
            one, other = theirs_by.get(tid), ours_by.get(tid)
            if one != other:
                self._entry_differs(part.slot, "", f"the unfinished transaction {tid}", shown(one), shown(other))

    def _entry_differs(self, slot: int, table: str, key: str, stored: str, replayed: str) -> None:
        verdict = self._verdict
        verdict.state_differences += 1
        if len(verdict.first_entries) < TOLD_MAX:
            verdict.first_entries.append(
                StateDifference(slot=slot, table=table, key=key, stored=stored, replayed=replayed)
            )


def _entries(state: SlotState, name: str) -> Mapping[Any, bytes]:
    table = state.tables.get(name)
    return _NOTHING if table is None else table.at(NEWEST)


def _by_tid(pending: list[PendingTransaction]) -> dict[int, PendingTransaction]:
    return {each.tid: each for each in pending}


def _offsets(at: SlotPart | SlotContent) -> str:
    passed = "" if at.passed_over is None else f", but for {shown(at.passed_over)}"
    return f"those before offset {at.next_offset}{passed}"


def _worded(before: bytes | None, now: bytes | None) -> bool:
    if before is None or now is None:
        return False
    return causes(decode_reply(before), decode_reply(now)) == WORDED_DIFFERENTLY


def _value(data: bytes | None) -> str:
    if data is None:
        return "nothing"
    try:
        return shown(decode_plain(data))
    except Exception:  # noqa: BLE001 - words only
        return shown(data)


def _outcome(reply: ReplyRecord) -> str:
    if reply.error is not None:
        _, kind, message = reply.error
        return shown(f"{kind}: {message}" if message else kind)
    return _value(reply.result)


def _place(reply: ReplyRecord) -> str:
    return f"epoch {reply.epoch}, phase {reply.phase}, transaction {reply.tid}"


def _difference(
    epoch: int, phase: int, tid: int, request_id: str, function: str, answered: str, replayed: str
) -> ReplyDifference:
    return ReplyDifference(
        epoch=epoch,
        phase=phase,
        tid=tid,
        request_id=request_id,
        function=function or f"request {request_id}",
        answered=answered,
        replayed=replayed,
    )


def _replies_of(directory: Path, name: str) -> Iterator[tuple[int, bytes]]:
    for record in read_records(directory / name):
        yield decode_reply(record).sequence, record


def _events_of(directory: Path, name: str) -> Iterator[tuple[str, bytes]]:
    return map(_event, read_records(directory / name))
