"""The demo's audit: whether the replies, the engine's records and the money agree, and if not, where they differ.

Every reply is recomputed from the sent calls, by a serial execution that shares no code with the engine.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from typing import Final, NamedTuple

from styx.cli.demo.bank import OPENING_BALANCE, app, encoded_state
from styx.cli.demo.senders import Entry, Journal
from styx.messages import Reply, reply_of
from styx.testing.history import SerializabilityViolation, check_history
from styx.testing.recorded_history import RecordedHistory
from styx.testing.serial import Entity

Balances = Mapping[str, int]
"""The balance of each account, by key, as the engine answered."""
_SHOWN_MAX: Final = 3
"""Differences that a check lists at most."""


class Check(NamedTuple):
    """A check of the audit, and its result."""

    name: str
    holds: bool
    detail: str


class _Differs(Exception):
    """The check does not hold; the message says where."""


def audit(journal: Journal, history: RecordedHistory, balances: Balances, n_slots: int) -> list[Check]:
    """All checks, in the order of their strength."""
    checks: list[tuple[str, Callable[[], str]]] = [
        ("answered once", lambda: _answered_once(journal, history)),
        ("nothing lost", lambda: _nothing_lost(journal, history)),
        ("replies kept", lambda: _same_when_asked_again(journal)),
        ("serial order", lambda: _serial_order(history, balances, n_slots)),
        ("money", lambda: _money(balances)),
    ]
    return [_run(name, check) for name, check in checks]


def _run(name: str, check: Callable[[], str]) -> Check:
    try:
        return Check(name, True, check())
    except (_Differs, SerializabilityViolation) as error:
        return Check(name, False, str(error))


def _answered_once(journal: Journal, history: RecordedHistory) -> str:
    """Each call has one reply, and each request in the log has one record in the replies stream."""
    _none("calls without exactly one reply", [e for e in journal.entries if len(e.replies) != 1])
    given = Counter(record.request_id for record in history.replies)
    wrong = [request_id for request_id in history.requests if given[request_id] != 1]
    _none("requests in the log without exactly one record in the replies stream", wrong)
    _none("records that answer no request", [request_id for request_id in given if request_id not in history.requests])
    return (
        f"{len(journal.entries):,} calls, one reply each; {len(history.replies):,} records in the replies stream, "
        "one for each request in the log"
    )


def _nothing_lost(journal: Journal, history: RecordedHistory) -> str:
    """Every reply that a client got stands in the replies stream, unchanged."""
    records = {record.request_id: record for record in history.replies}
    contradicted = []
    for entry in journal.entries:
        for told in entry.replies:
            record = records.get(told.request_id)
            if record is None or reply_of(record) != told:
                contradicted.append(entry)
    _none("replies that clients were given and that the replies stream lacks or contradicts", contradicted)
    return "every reply that a client was given stands in the replies stream, word for word"


def _same_when_asked_again(journal: Journal) -> str:
    """An idempotency key gives the same reply after the crash as before it."""
    asked = [entry for entry in journal.entries if entry.asked_again]
    changed = [e for e in asked if any(_substance(again) != _substance(e.replies[0]) for again in e.asked_again)]
    _none("calls that were answered differently when asked again", changed)
    return f"{len(asked):,} calls answered before the crash were sent again: each gave its first reply and ran nothing"


def _serial_order(history: RecordedHistory, balances: Balances, n_slots: int) -> str:
    """Replies and state are those of running the requests one by one."""
    final_state: dict[Entity, bytes] = {("account", key): encoded_state(balance) for key, balance in balances.items()}
    report = check_history(app, history.requests, history.replies, final_state, n_slots=n_slots, complete=True)
    return (
        f"{report.transactions:,} transactions run again one by one, in (epoch, phase, tid) order: every reply and "
        f"all {len(balances):,} balances are the same"
    )


def _money(balances: Balances) -> str:
    """Transfers neither create nor lose money."""
    expected, found = len(balances) * OPENING_BALANCE, sum(balances.values())
    if expected != found:
        raise _Differs(f"{expected:,} was paid in, {found:,} is there")
    return f"{len(balances):,} accounts x {OPENING_BALANCE} = {expected:,} was paid in, and {found:,} is there"


def _substance(reply: Reply) -> Reply:
    """The reply without its request's id, which differs at every attempt."""
    return reply._replace(request_id="")


def _none(what: str, found: list[Entry] | list[str]) -> None:
    if found:
        more = f" and {len(found) - _SHOWN_MAX:,} more" if len(found) > _SHOWN_MAX else ""
        raise _Differs(f"{len(found):,} {what}: {'; '.join(map(_shown, found[:_SHOWN_MAX]))}{more}")


def _shown(item: Entry | str) -> str:
    if isinstance(item, str):
        return item
    replies = ", ".join(map(_reply_text, item.replies)) or "no reply"
    return f"{item.call.function} of {item.call.key} ({replies})"


def _reply_text(reply: Reply) -> str:
    outcome = repr(reply.result) if reply.error is None else f"{reply.error.type}: {reply.error.message}"
    return f"epoch {reply.epoch}: {outcome}"
