"""What an audit finds of one interval: differences, where they began, or why it could not judge.

Plain data, which goes between processes as JSON, and words for people.
"""

from __future__ import annotations

from typing import Final

import msgspec

from styx.errors import StyxError

AGREED: Final = "agreed"
DIFFERS: Final = "differs"
UNJUDGED: Final = "unjudged"


class CannotJudge(StyxError):
    """Nothing can be said of the interval, for this reason. `passing`: a later attempt may succeed."""

    def __init__(self, reason: str, passing: bool = False) -> None:
        super().__init__(reason)
        self.passing = passing


class ReplyDifference(msgspec.Struct, frozen=True, kw_only=True):
    """A reply that the replay gives otherwise, with its place in the serial order. `answered` or `replayed` is empty if
    there is no such reply. `function` has the operator, key and function of the request, as far as it could be read.
    """

    epoch: int
    phase: int
    tid: int
    request_id: str
    function: str
    answered: str
    replayed: str


class StateDifference(msgspec.Struct, frozen=True, kw_only=True):
    """An entry of a slot that differs at the end; `stored` and `replayed` are shown short. Entities and rows have
    their `table` and `key`; of what is sequenced and not ended, `table` is empty and `key` says what.
    """

    slot: int
    table: str
    key: str
    stored: str
    replayed: str


class EventDifference(msgspec.Struct, frozen=True, kw_only=True):
    """An event that the replay does not emit (`replayed` is empty), emits otherwise, or that is not in its log
    (`recorded` is empty).
    """

    slot: int
    event: str
    id: str
    recorded: str
    replayed: str


class Origin(msgspec.Struct, frozen=True, kw_only=True):
    """Where a difference began: the first transaction that two replays, or a replay and the replies, do not agree on.

    `functions` are those that wrote what differs there, or the transaction's own. `how` says what was compared.
    """

    epoch: int
    phase: int
    tid: int
    functions: list[str]
    how: str


class Verdict(msgspec.Struct, kw_only=True):
    """Of the epochs behind `after` up to `until`. `outcome` is one of the names above; `reason` is why nothing could be
    judged, or why the replay ended early. The lists have the first differences, the numbers beside them count all.
    """

    after: int
    until: int
    outcome: str = AGREED
    reason: str = ""
    passing: bool = False
    workers: int = 0
    recorded_workers: int = 0
    epochs: int = 0
    replies: int = 0
    events: int = 0
    entries: int = 0
    reply_differences: int = 0
    state_differences: int = 0
    event_differences: int = 0
    worded: int = 0
    first_replies: list[ReplyDifference] = []
    first_entries: list[StateDifference] = []
    first_events: list[EventDifference] = []
    origin: Origin | None = None
    writers: list[str] = []
    notes: list[str] = []
    seconds: float = 0.0
    cpu_seconds: float = 0.0

    @property
    def differences(self) -> int:
        """Of all kinds."""
        return self.reply_differences + self.state_differences + self.event_differences

    def lines(self) -> list[str]:
        """The verdict in words, a line each."""
        span = f"epochs {self.after + 1} to {self.until}"
        if self.outcome == UNJUDGED:
            return [f"{span}: could not be judged: {self.reason}"]
        ran = (
            f"epochs {self.epochs}, replies {self.replies}, events {self.events}, entries of the state {self.entries}; "
            f"workers {self.recorded_workers} then, {self.workers} now; {self.seconds:.2f} s, of the processor "
            f"{self.cpu_seconds:.2f} s"
        )
        worded = f"; errors in other words, which is harmless: {self.worded}" if self.worded else ""
        if self.outcome == AGREED:
            return [f"{span}: agreed: {ran}{worded}", *self.notes]
        lines = [
            f"{span}: DIFFERS: in replies {self.reply_differences}, in entries of the state {self.state_differences}, "
            f"in events {self.event_differences}; of {ran}{worded}"
        ]
        if self.reason:
            lines.append(f"  {self.reason}")
        lines += [f"  {_reply(each)}" for each in self.first_replies]
        lines += [f"  {_entry(each)}" for each in self.first_entries]
        lines += [f"  {_event(each)}" for each in self.first_events]
        if self.origin is not None:
            lines.append(f"  it began {_origin(self.origin)}")
        if self.writers:
            lines.append(f"  what differs was written by {', '.join(self.writers)}")
        return [*lines, *(f"  {note}" for note in self.notes)]


def _reply(found: ReplyDifference) -> str:
    answered, replayed = found.answered or "nothing", found.replayed or "nothing"
    where = f"epoch {found.epoch}, phase {found.phase}, transaction {found.tid}"
    return f"reply: {where}, {found.function}: {answered} was answered, the replay gives {replayed}"


def _entry(found: StateDifference) -> str:
    table = f"{found.table}[{found.key}]" if found.table else found.key
    return f"state: slot {found.slot}, {table}: {found.stored} is stored, the replay has {found.replayed}"


def _event(found: EventDifference) -> str:
    recorded, replayed = found.recorded or "nothing", found.replayed or "nothing"
    where = f"slot {found.slot}, {found.event}, {found.id}"
    return f"event: {where}: the log has {recorded}, the replay emits {replayed}"


def _origin(origin: Origin) -> str:
    functions = " or ".join(origin.functions) or "a function that is not known"
    place = f"epoch {origin.epoch}, phase {origin.phase}, transaction {origin.tid}"
    return f"in {functions}: {place} ({origin.how})"


encode_verdict = msgspec.json.encode
"""One line of JSON."""


def decode_verdict(line: bytes) -> Verdict:
    """What `encode_verdict` gave."""
    return msgspec.json.decode(line, type=Verdict)
