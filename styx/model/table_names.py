"""The names of a slot's tables, and what belongs to whom: values, sequences and rows of an operator's entities.

The table `cart` holds the values of the operator's entities, `cart/<sequences>` their sequences, `cart/<agenda>` the
calls that they gave for later, `cart/<dead>` those of them that were given up, `cart/items` the rows of the declared
table `items`, `cart/<view open>` those of the view `open`, which the engine makes of other rows, and `cart/<kept paid>`
those that emitting the event `paid` has left. What they emit is written to `cart/<events>`, which no slot keeps: a
commit hands it on. No operator's name has a `/`, and no declared table has a `<` in its name. The key of all but a
value begins with its entity's key. An entity *has state* if it has any of these: then it must be found again, and its
operator must stay. Only values count as entities.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Final

from styx.model.agenda import AGENDA_SUFFIX, DEAD_SUFFIX
from styx.model.event import EVENTS_SUFFIX
from styx.model.sequence import SEQUENCES_SUFFIX
from styx.values.codec import shown

if TYPE_CHECKING:
    from styx.model.operator import Operator

_SEPARATOR: Final = "/"
_NO_ROWS: Final = (SEQUENCES_SUFFIX, AGENDA_SUFFIX, DEAD_SUFFIX, EVENTS_SUFFIX)
_NO_RANGES: Final = (SEQUENCES_SUFFIX, AGENDA_SUFFIX, EVENTS_SUFFIX)
_VIEW: Final = "/<view "
_KEPT: Final = "/<kept "
NAMES_KNOWN_MAX: Final = 10_000
"""Names of tables of which it is kept whether they hold rows."""
_rows_known: Final[dict[str, bool]] = {}


def row_table(operator: str, name: str) -> str:
    """The name of the table that holds the rows of an operator's declared table."""
    return f"{operator}{_SEPARATOR}{name}"


def view_table(operator: str, name: str) -> str:
    """The name of the table that holds the rows of a view of an operator's table."""
    return f"{operator}{_VIEW}{name}>"


def kept_table(operator: str, event: str) -> str:
    """The name of the table that holds the events that an operator's entities have kept."""
    return f"{operator}{_KEPT}{event}>"


def kept_event(table: str) -> str:
    """The event that a table of that name holds, "" if it holds none."""
    return table.partition(_KEPT)[2][:-1]


def holds_view(table: str) -> bool:
    """Whether the table holds rows of a view, which can be made anew of other rows."""
    return _VIEW in table


def owner_of(table: str) -> str:
    """The operator whose entities' values, sequences or rows the table holds."""
    return table.partition(_SEPARATOR)[0]


def own_name(table: str) -> str:
    """The table's name without its operator's, "" for the table of the entities' values."""
    return table.partition(_SEPARATOR)[2]


def holds_values(table: str) -> bool:
    """Whether the table holds the values of entities, one for each."""
    return _SEPARATOR not in table


def holds_sequences(table: str) -> bool:
    """Whether the table holds sequences."""
    return table.endswith(SEQUENCES_SUFFIX)


def holds_agenda(table: str) -> bool:
    """Whether the table holds calls that were given for later."""
    return table.endswith(AGENDA_SUFFIX)


def holds_dead(table: str) -> bool:
    """Whether the table holds calls that were given up."""
    return table.endswith(DEAD_SUFFIX)


def holds_events(table: str) -> bool:
    """Whether the table takes events that are emitted, and keeps nothing."""
    return table.endswith(EVENTS_SUFFIX)


def has_ranges(table: str) -> bool:
    """Whether the table has indexes, of which queries read ranges: rows, and calls that were given up."""
    return _SEPARATOR in table and not table.endswith(_NO_RANGES)


def holds_rows(table: str) -> bool:
    """Whether the table holds rows of a declared table."""
    known = _rows_known.get(table)
    if known is None:
        known = _SEPARATOR in table and not table.endswith(_NO_ROWS)
        if len(_rows_known) < NAMES_KNOWN_MAX:
            _rows_known[table] = known  # each cell of a transaction asks
    return known


def entities_of(operator: Operator, table: str, keys: Iterable[Any]) -> Iterable[Any]:
    """The keys of the entities that `keys` of a table of the operator belong to.

    A key that cannot belong to one is given as it is, and is no key of the operator either.
    """
    if holds_values(table):
        return keys
    if not holds_rows(table):
        if operator.key_type.scalar is not None:
            return [key[0] if len(key) == 2 else key for key in keys]
        return [key[:-1] for key in keys]
    parts = len(operator.key_type.parts)
    if operator.key_type.scalar is not None:
        return [key[0] if len(key) > 1 or (key and holds_view(table)) else key for key in keys]
    return [key[:parts] for key in keys]


def row_key(operator: Operator, key: Any) -> tuple[Any, Any]:
    """(the entity's key, the primary key) of a row of the operator; a primary key of one column as its value."""
    if operator.key_type.scalar is not None:
        entity, rest = key[0], key[1:]
    else:
        parts = len(operator.key_type.parts)
        entity, rest = key[:parts], key[parts:]
    return entity, rest[0] if len(rest) == 1 else rest


def entry_name(table: str, key: Any) -> str:
    """As errors name an entity, sequence or row: `acc['a']`."""
    return f"{table}[{shown(key)}]"
