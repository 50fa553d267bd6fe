"""What the agendas of a slot have of crons when a version of the app begins there, and at the first start: one entry
for each that is declared, and for another none that calls anything.

An entry whose expression is the same stays, with its next tick. A changed one begins anew, behind the last tick; so
does one that was declared no more in between, for a day. The same tables always give the same entries. Pure; it knows
no clock, so an entry that begins only asks for its first tick.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from msgspec.structs import replace

from styx.errors import BadKey
from styx.model.agenda import AgendaEntry, agenda_of, decode_entry, encode_entry, giver_of
from styx.model.app import App
from styx.model.cron import Cron, first_entry, gone_entry, is_cron_key
from styx.model.operator import Operator
from styx.model.table_names import holds_agenda, owner_of
from styx.schema.conversion import Tables

Here = Callable[[Operator, Any], bool]
"""Whether an entity of an operator lives in the slot."""


def has_crons(app: App) -> bool:
    """Whether the app declares any."""
    return any(operator.crons for operator in app.operators.values())


def cron_entries(app: App, tables: Tables, here: Here) -> dict[str, dict[Any, bytes | None]]:
    """What is to be written in the slot with these tables, by table."""
    wanted = {
        (agenda_of(operator.name), cron.place): (operator.name, cron)
        for operator in app.operators.values()
        for cron in operator.crons.values()
        if here(operator, cron.key)
    }
    writes: dict[str, dict[Any, bytes | None]] = {}
    for name in [name for name in tables if holds_agenda(name)]:
        operator = app.operators.get(owner_of(name))
        for key, data in tables[name].items():
            if is_cron_key(key) and (name, key) not in wanted:
                left = gone_entry(decode_entry(data)) if _lives(operator, giver_of(key)[0], here) else None
                encoded = None if left is None else encode_entry(left)
                if encoded != data:
                    writes.setdefault(name, {})[key] = encoded
    for (name, place), (operator_name, cron) in wanted.items():
        stored = tables.get(name, {}).get(place)
        entry = encode_entry(_entry(operator_name, cron, None if stored is None else decode_entry(stored)))
        if entry != stored:
            writes.setdefault(name, {})[place] = entry
    return writes


def _lives(operator: Operator | None, key: Any, here: Here) -> bool:
    """Whether the operator, if there is one, can have this entity, and has it in the slot."""
    if operator is None:
        return False
    try:
        return here(operator, operator.check_key(key))
    except BadKey:
        return False


def _entry(operator: str, cron: Cron, stored: AgendaEntry | None) -> AgendaEntry:
    if stored is None:
        return first_entry(operator, cron)
    if stored.cron != cron.expression:
        # Behind the last tick that was made, whatever the clock of a worker shows that comes now. If it is behind, this
        # begins at the very time of the last tick, which may be when the same cron began before: so it has another id.
        first, given_us = first_entry(operator, cron), stored.given_us
        return replace(first, given_us=given_us, id=f"{first.id}-{given_us:x}") if given_us else first
    return replace(stored, attempts=cron.attempts, first_pause_us=cron.first_pause_us)


def without_crons(tables: Mapping[str, Mapping[Any, bytes]]) -> dict[str, Mapping[Any, bytes]]:
    """The tables without the entries of crons, which go with their declarations and are nobody's loss."""
    left: dict[str, Mapping[Any, bytes]] = {}
    for name, table in tables.items():
        if holds_agenda(name) and any(map(is_cron_key, table)):
            table = {key: data for key, data in table.items() if not is_cron_key(key)}  # noqa: PLW2901 - what is left
        left[name] = table
    return left
