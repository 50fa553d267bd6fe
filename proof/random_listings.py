"""Random requests that look at state as clients do: a slot's part of a listing, the value of an entity, and its rows in
a table. The engine has functions for these; no function of `proof.chaos_app` is called.
"""

from __future__ import annotations

from random import Random
from typing import Any, Final

import msgspec

from proof.chaos_app import PROGRAMMED, key_of
from proof.random_requests import request_key
from proof.random_rows import ENTITIES, IDS
from proof.row_steps import TABLES, VIEWS
from styx.messages import Request
from styx.model.entity_list import PART_MAX
from styx.model.function_spec import LIST_FUNCTION, READ_FUNCTION, READ_ROWS_FUNCTION
from styx.model.key_range import key_text
from styx.model.operator import Operator
from styx.testing.reads import ReadSeen

KEYS: Final = 6
"""Entities of an operator that listings begin behind."""
_LISTED: Final = ("", *TABLES, VIEWS[0], "nothing")
_WHOLE: Final = 2**20
_encode = msgspec.msgpack.Encoder().encode


def random_listing(rng: Random, n_slots: int, request_id: str) -> Request:
    """A part of a listing, of the entities of an operator or of the rows of a table; at times what is refused."""
    index = rng.randrange(len(PROGRAMMED))
    operator = PROGRAMMED[index]
    table = rng.choice(_LISTED) if rng.random() < 0.6 else ""
    number = rng.randrange(operator.partitions.numbers.count(n_slots))
    first, room = rng.choice((1, 2, 5, PART_MAX)), rng.choice((1, 60, _WHOLE, _WHOLE))
    arguments = (table, _prefix(rng, index, table), _after(rng, index, table), first, room, rng.random() < 0.7)
    return Request(request_id, operator.partitions.name, number, LIST_FUNCTION, _encode(arguments))


def random_point(rng: Random, request_id: str) -> Request:
    """The value of an entity, or its rows in a table."""
    index = rng.randrange(len(PROGRAMMED))
    key = request_key(key_of(index, rng.randrange(KEYS if rng.random() < 0.5 else ENTITIES)))
    name = PROGRAMMED[index].name
    if rng.random() < 0.5:
        return Request(request_id, name, key, READ_FUNCTION, _encode(()))
    return Request(request_id, name, key, READ_ROWS_FUNCTION, _encode((rng.choice((*TABLES, VIEWS[0])),)))


def _parts(operator: Operator, key: Any) -> list[Any]:
    return list(key) if operator.key_type.parts else [key]


def _prefix(rng: Random, index: int, table: str) -> str:
    """Of keys of entities or of rows; none in every second listing."""
    operator, key = PROGRAMMED[index], key_of(index, rng.randrange(KEYS))
    if rng.random() < 0.5:
        return ""
    if not table and not operator.key_type.parts:
        return str(key)[: rng.randint(0, 2)] if rng.random() < 0.9 else "nothing"
    parts = _parts(operator, key)
    return key_text(tuple(parts[: rng.randint(1, len(parts))]))


def _after(rng: Random, index: int, table: str) -> str | None:
    if rng.random() < 0.5:
        return None
    key: Any = key_of(index, rng.randrange(KEYS))
    return key_text((*_parts(PROGRAMMED[index], key), rng.randrange(IDS)) if table else key)


def gave_entries(read: ReadSeen) -> bool:
    """Whether a read has given entries of a listing."""
    return read.request.function == LIST_FUNCTION and read.result is not None and bool(_entries(read.result))


def _entries(result: bytes) -> list[Any]:
    found: list[Any] = msgspec.msgpack.decode(msgspec.msgpack.decode(result))[0]
    return found
