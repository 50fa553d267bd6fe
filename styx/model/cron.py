"""Cron: a function that is called whenever its expression says so, in UTC, `@operator.cron("0 3 * * *", key="all")`.

Each declared one has one entry in the agenda of its entity (`styx.model.agenda`), under a key that no function can give
or withdraw. The delivery of that entry puts the next one in its place, in the same transaction: so no tick is given
twice, and none is lost. Ticks that have passed meanwhile are one. Pure: a clock is never read here, and times come from
the log.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, Final

import msgspec
from cronsim import CronSim, CronSimError

from styx.errors import BadKey, ConfigurationError
from styx.model.agenda import USUAL_RETRY, AgendaEntry, Retry, entry_key, microseconds
from styx.model.signature import NO_ARGUMENTS
from styx.values.codec import shown

if TYPE_CHECKING:
    from styx.model.partitioning import Key, KeySpace

CRON_MARK: Final = "*"
"""Begins the last part of a cron entry's key in the agenda; the function's name follows."""
BEGINS_US: Final = 1
"""When an entry is due that begins a cron: at once, but not before the clock has been told."""
EXPRESSION_CHARS_MAX: Final = 200
GONE_FUNCTION: Final = "<gone>"
"""Stands in the entry of a cron that is declared no more in the place of the function; none can have its name."""
REMEMBERED: Final = timedelta(days=1)
"""How long it is known behind its last tick which that was; no clock of a worker is wrong by as much."""

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND: Final = timedelta(microseconds=1)
_EXAMPLE: Final = 'such as "0 3 * * *": minute, hour, day of the month, month, day of the week'


class Cron(msgspec.Struct, frozen=True):
    """A declaration: `function` of an operator is called on `key` when `expression` says so."""

    function: str
    key: Any
    expression: str
    attempts: int
    first_pause_us: int

    def __str__(self) -> str:
        pause_s = self.first_pause_us / 1_000_000
        return f"{self.function} on {self.key!r}: {self.expression}; {self.attempts} attempts, {pause_s:g} s"

    @property
    def place(self) -> tuple[str | int, ...]:
        """The key of its entry in the operator's agenda."""
        return entry_key(self.key, CRON_MARK + self.function)


# Declarations ----------------------------------------------------------------------------------------------


def declared_cron(keys: KeySpace, function: str, expression: Any, key: Any, retry: Any) -> Cron:
    """The declaration, checked, for an operator with these keys; raises `ConfigurationError`."""
    named = f"{keys.operator}.{function}: @….cron"
    try:
        checked: Key = keys.check(key)
    except BadKey as error:
        raise ConfigurationError(f"{named} takes a key= of the operator's key type: {error}") from None
    try:
        keys.partition_of(checked, 1)  # asked again when state is loaded, where an error would end the worker
    except BadKey as error:
        raise ConfigurationError(f"{named} takes a key= that has a place: {error}") from None
    pauses = USUAL_RETRY if retry is None else retry
    if not isinstance(pauses, Retry):
        raise ConfigurationError(f"{named} takes retry=Retry(…) or nothing, got {shown(retry)}")
    return Cron(function, checked, _checked_expression(named, expression), pauses.attempts, microseconds(pauses.first))


def needed_parameters(function: Callable[..., Any]) -> list[str]:
    """The names of a function's parameters, but for the context, that have no default."""
    parameters = list(inspect.signature(function).parameters.values())[1:]
    open_ended = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    return [each.name for each in parameters if each.default is inspect.Parameter.empty and each.kind not in open_ended]


def _checked_expression(named: str, expression: Any) -> str:
    if type(expression) is not str or len(expression) > EXPRESSION_CHARS_MAX or not expression.isascii():
        raise ConfigurationError(f"{named} takes an expression {_EXAMPLE}: got {shown(expression)}")
    steady = " ".join(expression.split())
    try:
        next_tick(steady, 0)
    except CronSimError as error:
        raise ConfigurationError(f"{named}({shown(expression)}): {error}. An expression is text {_EXAMPLE}") from None
    except (StopIteration, OverflowError, ValueError):
        raise ConfigurationError(f"{named}({shown(expression)}): no such time ever comes") from None
    return steady


def is_cron_key(key: Any) -> bool:
    """Whether an entry of an agenda under this key is a cron's."""
    last = key[-1]
    return type(last) is str and last.startswith(CRON_MARK)


# Ticks -----------------------------------------------------------------------------------------------------


def next_tick(expression: str, us: int) -> int:
    """The first tick behind a time, both in microseconds since 1970."""
    return (next(CronSim(expression, _EPOCH + us * _MICROSECOND)) - _EPOCH) // _MICROSECOND


def last_tick(expression: str, us: int) -> int:
    """The last tick at or before a time."""
    return (next(CronSim(expression, _EPOCH + (us + 1) * _MICROSECOND, reverse=True)) - _EPOCH) // _MICROSECOND


def first_entry(operator: str, cron: Cron) -> AgendaEntry:
    """The entry that begins a cron. It is due at once and calls nothing: its delivery gives the first tick."""
    digest = blake2b(msgspec.msgpack.encode([operator, cron]), digest_size=16).hexdigest()
    return AgendaEntry(
        BEGINS_US,
        f"cron-{digest}",
        0,
        operator,
        cron.function,
        list(cron.key) if type(cron.key) is tuple else cron.key,
        NO_ARGUMENTS,
        cron.attempts,
        cron.first_pause_us,
        cron=cron.expression,
    )


def begins(entry: AgendaEntry) -> bool:
    """Whether the entry only begins a cron."""
    return bool(entry.cron) and entry.due_us == BEGINS_US


def gone_entry(entry: AgendaEntry) -> AgendaEntry | None:
    """What stays in the place of the entry of a cron that is declared no more, so that it goes on behind its last tick
    if it is declared again. It calls nothing, and its delivery takes it away. None if there was no tick.
    """
    if is_gone(entry) or not entry.given_us:
        return entry if is_gone(entry) else None
    due_us = entry.given_us + microseconds(REMEMBERED)
    return msgspec.structs.replace(entry, due_us=due_us, id=f"gone-{entry.id}", function=GONE_FUNCTION, cron="")


def is_gone(entry: AgendaEntry) -> bool:
    """Whether the entry only remembers the last tick of a cron."""
    return entry.function == GONE_FUNCTION


def next_entry(entry: AgendaEntry, now_us: int, its_id: str) -> AgendaEntry:
    """The entry of a cron's next tick, which a transaction gives at `now_us`."""
    return msgspec.structs.replace(entry, due_us=next_tick(entry.cron, now_us), id=its_id, given_us=now_us, attempt=0)


def moment_us(entry: AgendaEntry, now_us: int) -> int:
    """What `ctx.now()` is in the delivery of an entry that is due at `now_us`: a cron's last tick, else that time."""
    return last_tick(entry.cron, now_us) if entry.cron and not begins(entry) else now_us
