"""An agenda: the calls that committed transactions have given for later, `ctx.after_commit` and `ctx.after`.

An entry is ordinary state of the entity that gave it, in a table of the operator under a name that no operator can
have: so visibility, conflicts, commits, snapshots, moves of slots and backups treat it as they treat a sequence, and a
transaction that aborts gives nothing. The worker takes what is due into an epoch as it takes requests, and each entry
becomes a transaction of its own (`styx.model.delivery`). An entry never calls anything by itself.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any, Final

import msgspec

from styx.errors import ConfigurationError, UnsupportedValue
from styx.model.limits import NAME_CHARS_MAX
from styx.model.partitioning import Key
from styx.values.codec import shown

AGENDA_SUFFIX: Final = "/<agenda>"
"""Follows the operator's name in the name of the table that holds what its entities gave for later."""
DEAD_SUFFIX: Final = "/<dead>"
"""Follows the operator's name in the name of the table that holds what could not be delivered."""
DELAY_MAX: Final = timedelta(days=36_500)
"""The longest delay of a call."""
BACKOFF_MAX: Final = timedelta(hours=1)
"""The longest pause before another attempt."""
ATTEMPTS_MAX: Final = 1_000
AT_ONCE: Final = 0
"""The due time of a call after commit: it is due as soon as it is there."""
NAMED: Final = "@"
"""Begins the last part of a named entry's key; an entry without a name has its id there."""
FIRST_RUN: Final = 0
"""The execution step, whose writes are committed in phase 1."""
LOCK_PHASE: Final = 1
"""Phase 2."""
LOCAL_PART: Final = 2
"""Phase 3. These three are the parts of an epoch, in the serial order."""

_MICROSECOND: Final = timedelta(microseconds=1)
_encode = msgspec.msgpack.Encoder().encode


class Retry:
    """How often a call that was given for later is tried, and how long it pauses before another attempt.

    `attempts`: 1 to 1,000 in all. `first`: the pause behind the first one, up to an hour; each further pause is twice
    as long, an hour at most. Raises `ConfigurationError`.
    """

    __slots__ = ("attempts", "first")

    def __init__(self, attempts: int = 5, first: timedelta = timedelta(seconds=1)) -> None:
        if type(attempts) is not int or not 1 <= attempts <= ATTEMPTS_MAX:
            raise ConfigurationError(f"Retry(attempts=…) is a number from 1 to {ATTEMPTS_MAX}, got {shown(attempts)}")
        if not isinstance(first, timedelta) or not timedelta(0) <= first <= BACKOFF_MAX:
            raise ConfigurationError(f"Retry(first=…) is a timedelta from 0 to {BACKOFF_MAX}, got {shown(first)}")
        self.attempts = attempts
        self.first = first

    def __repr__(self) -> str:
        return f"Retry(attempts={self.attempts}, first={self.first!r})"


USUAL_RETRY: Final = Retry()


class AgendaEntry(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """A call that is to be made later, in a transaction of its own: of `function` of `operator` on `key`.

    `due_us` is when, in microseconds since 1970, `AT_ONCE` for as soon as possible; `given_us` is what `ctx.now()` was
    where it was given. `id` names this entry, and sorts entries of one time in the order in which they were given.
    `attempt` counts the attempts that have failed. `cron` is the expression of a tick (`styx.model.cron`), else "".
    """

    due_us: int
    id: str
    given_us: int
    operator: str
    function: str
    key: str | int | list[str | int]
    params: bytes
    attempts: int
    first_pause_us: int
    attempt: int = 0
    cron: str = ""


def called_key(entry: AgendaEntry) -> Key:
    """The key that the call is for."""
    return tuple(entry.key) if isinstance(entry.key, list) else entry.key  # msgpack has arrays only


class _Due(msgspec.Struct, array_like=True, frozen=True, gc=False):
    due_us: int
    id: str


class DeadCall(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """A call that was given up: its entry, when, and the error (type, message) of the last attempt."""

    entry: AgendaEntry
    died_us: int
    error: tuple[str, str]


_decode_entry = msgspec.msgpack.Decoder(AgendaEntry).decode
_decode_due = msgspec.msgpack.Decoder(_Due).decode
_decode_dead = msgspec.msgpack.Decoder(DeadCall).decode


def encode_entry(entry: AgendaEntry | DeadCall) -> bytes:
    """The entry as it is stored."""
    return _encode(entry)


def decode_entry(data: bytes) -> AgendaEntry:
    """A stored entry; raises `msgspec.DecodeError`."""
    return _decode_entry(data)


def decode_dead(data: bytes) -> DeadCall:
    """A stored call that was given up; raises `msgspec.DecodeError`."""
    return _decode_dead(data)


def due_of(data: bytes) -> tuple[int, str]:
    """(when it is due, its id) of a stored entry; the order in which entries are taken."""
    due = _decode_due(data)
    return due.due_us, due.id


# Names and keys --------------------------------------------------------------------------------------------


def agenda_of(operator: str) -> str:
    """The table with what the operator's entities gave for later."""
    return operator + AGENDA_SUFFIX


def dead_of(operator: str) -> str:
    """The table with what of it was given up."""
    return operator + DEAD_SUFFIX


def entry_key(entity: Key, last: str) -> tuple[str | int, ...]:
    """The key in those tables: the giving entity's key, flat, and the entry's own part."""
    return (*entity, last) if type(entity) is tuple else (entity, last)  # type: ignore[return-value]  # a part


def giver_of(key: tuple[str | int, ...]) -> tuple[Key, str]:
    """(the giving entity's key, the entry's own part) of a key that `entry_key` made."""
    entity = key[:-1]
    return (entity[0] if len(entity) == 1 else entity), str(key[-1])


# What functions say ----------------------------------------------------------------------------------------


def checked_delay(delay: Any) -> int:
    """A delay in microseconds; raises `UnsupportedValue`."""
    if not isinstance(delay, timedelta) or not timedelta(0) <= delay <= DELAY_MAX:
        raise UnsupportedValue(
            f"ctx.after takes a timedelta from 0 to {DELAY_MAX.days} days, such as timedelta(minutes=15): got "
            f"{shown(delay)}"
        )
    return microseconds(delay)


def checked_name(name: Any) -> str:
    """A named entry's name; raises `UnsupportedValue`."""
    if type(name) is not str or not 0 < len(name) <= NAME_CHARS_MAX or not name.isprintable():
        raise UnsupportedValue(
            f"the name of a call for later is a text of 1 to {NAME_CHARS_MAX} printable characters: got {shown(name)}"
        )
    return name


def pause_us(entry: AgendaEntry) -> int:
    """How long to wait, in microseconds, behind the failure of attempt number `entry.attempt` (from 1 on). One at
    least, because the time of a delivery is in its request id: no two attempts may have the same one.
    """
    if not entry.first_pause_us:
        return 1
    longest = microseconds(BACKOFF_MAX)
    doublings = entry.attempt - 1
    return longest if doublings > 40 else min(longest, entry.first_pause_us << doublings)


def microseconds(delay: timedelta) -> int:
    """Whole microseconds of a time span."""
    return delay // _MICROSECOND
