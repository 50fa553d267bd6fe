"""Transactions that are carried into the next epoch again and again: counted by function, and told to a person.

A transaction is carried if it was in conflict and could not end in the lock phase, for example because its calls to
other slots still changed after `PATCH_ROUNDS_MAX` rounds. Once or twice is usual under contention. A third time says
that the app's functions make each other change, and each time costs the transaction an epoch.
"""

from __future__ import annotations

import logging
from collections import OrderedDict
from collections.abc import Callable, Mapping
from time import monotonic
from typing import Any, Final

from styx.reports.json_lines import FIELDS
from styx.reports.mistakes import key_text, printable
from styx.values.codec import shown
from styx.worker.changed_call import ChangedCall, Invoked
from styx.worker.notes import CarriedNote

USUAL_TIMES: Final = 2
"""Times that a transaction may be carried before a person is told."""
TELL_SECONDS: Final = 60.0
"""Between two messages about the same function and changing call."""
KINDS_MAX: Final = 100
"""Pairs of function and changing call that are told apart; of more, those that were not seen for longest are forgotten.
"""
FUNCTIONS_MAX: Final = 200
"""Functions with a count of their own; further ones share `OTHERS`."""
FUNCTIONS_TOLD: Final = 5
"""Functions of one worker that `styx status` shows."""
OTHERS: Final = "others"
ADVICE: Final = (
    "Each time costs the transaction an epoch. Calls to other slots, and results from there, change if they depend on "
    "what other transactions change, such as a counter. Take ids from ctx.unique_id(). Keep the numbers of a "
    "ctx.sequence() on its slot: begin the request at its entity, and place there what has the number as its key "
    "(partition_key). Declare functions that only read read_only=True, and those that stay on their slot local=True. "
    "Split an entity that all requests change. "
)
SEE: Final = 'See "Numbers and ids" in docs/programming.md'

_log = logging.getLogger("styx.carried")


class CarriedReports:
    """`again` counts, by function, how often transactions were carried beyond `USUAL_TIMES`. `worst` is the note of the
    one that was carried most often.
    """

    def __init__(self, clock: Callable[[], float] = monotonic) -> None:
        self.again: dict[str, int] = {}
        self.worst: CarriedNote | None = None
        self._clock = clock
        self._advice = ADVICE
        self._kinds: OrderedDict[tuple[object, ...], _Kind] = OrderedDict()

    def take(self, notes: list[CarriedNote], left_out: Mapping[tuple[str, str, int], int]) -> None:
        """Takes what the worker has noted."""
        for note in notes:
            if self.worst is None or note.times > self.worst.times:
                self.worst = note
            if note.times > USUAL_TIMES:
                self._count(note.operator, note.function, 1)
                self._tell(note)
        for (operator, function, times), number in left_out.items():
            if times > USUAL_TIMES:
                self._count(operator, function, number)

    def most(self) -> dict[str, int]:
        """The `FUNCTIONS_TOLD` functions with the highest counts, the highest first."""
        return dict(sorted(self.again.items(), key=lambda each: (-each[1], each[0]))[:FUNCTIONS_TOLD])

    def _count(self, operator: str, function: str, number: int) -> None:
        name = f"{operator}.{function}"
        if name not in self.again and len(self.again) >= FUNCTIONS_MAX:
            name = OTHERS
        self.again[name] = self.again.get(name, 0) + number

    def _tell(self, note: CarriedNote) -> None:
        changed = note.changed
        # By functions, not by keys: of these there may be millions.
        kind = (note.operator, note.function, *(() if changed is None else _functions(changed)))
        known = self._kinds.pop(kind, None)
        if known is None:
            if len(self._kinds) >= KINDS_MAX:
                self._kinds.popitem(last=False)
            known = _Kind()
        self._kinds[kind] = known
        known.since += 1
        now_s = self._clock()
        if known.told_s is not None and now_s - known.told_s < TELL_SECONDS:
            return
        more = "" if known.told_s is None else f"; {known.since:,} such since the last message"
        known.told_s, known.since = now_s, 0
        advice, self._advice = self._advice, ""  # at length once
        _log.warning("%s%s. %s%s", carried_text(note), more, advice, SEE, extra={FIELDS: _fields(note)})


class _Kind:
    """When messages of one kind were told, and how many notes have come since."""

    def __init__(self) -> None:
        self.told_s: float | None = None
        self.since = 0


def carried_text(note: CarriedNote) -> str:
    """Which transaction was carried how often, and what changed."""
    text = f"{_called((note.operator, note.key, note.function))} was carried {_times(note.times)}"
    return printable(f"{text} (tid {note.tid}): {_changed_text(note.changed)}")


def _changed_text(changed: ChangedCall | None) -> str:
    if changed is None:
        return "what changes was seen on another worker, or an exception was not final"
    if changed.callee is None:
        return f"the result or the calls of {_called(changed.caller)} change from run to run"
    return f"{_called(changed.caller)} calls {_called(changed.callee)}, and another one or none when it is run again"


def _called(invoked: Invoked) -> str:
    operator, key, function = invoked
    return f"{operator}.{function} on {shown(key)}"


def _times(times: int) -> str:
    return "once" if times == 1 else "twice" if times == 2 else f"{times:,} times"


def _functions(changed: ChangedCall) -> tuple[object, ...]:
    caller, callee = changed.caller, changed.callee
    return (caller[0], caller[2], *(() if callee is None else (callee[0], callee[2])))


def _fields(note: CarriedNote) -> dict[str, Any]:
    return {
        "operator": note.operator,
        "key": key_text(note.key),
        "function": note.function,
        "tid": note.tid,
        "epoch": note.epoch,
        "times": note.times,
    }
