"""The delivery of a call that was given for later: the built-in functions that the worker runs for agenda entries.

A delivery is an ordinary transaction, rooted at the entity that gave the call: it takes the entry out of the agenda and
makes the call, both or neither. The next tick takes the place of a cron's entry. If it aborts, a second transaction
puts the entry off, or, after its last attempt, to the operator's dead calls. The end of a life calls nothing: its
delivery deletes. No request of a client can name these functions. Paper section 3.

Calls that follow each other in a lane may have one delivery together: all of them are made, or none. If it aborts, the
call that failed is set apart, to be made alone at once: nothing counts as an attempt of it but what it does alone.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple
from weakref import WeakKeyDictionary

import msgspec
from msgspec.structs import replace

from styx.errors import BadArguments
from styx.messages import Request
from styx.model.agenda import (
    AgendaEntry,
    DeadCall,
    agenda_of,
    decode_entry,
    encode_entry,
    entry_key,
    giver_of,
    pause_us,
)
from styx.model.cell import Cell
from styx.model.context import Context
from styx.model.cron import begins, is_gone, next_entry
from styx.model.dead_calls import keep_dead
from styx.model.expiry import expire
from styx.model.function_spec import DELIVER_FUNCTION, PUT_OFF_FUNCTION, FunctionSpec
from styx.model.giving import call_encoded, new_id
from styx.model.lifetime import life_of
from styx.model.operator import Operator
from styx.model.table_names import owner_of

DELIVERED: Final = "delivered"
WITHDRAWN: Final = "withdrawn"
PUT_OFF: Final = "put off"
DEAD: Final = "dead"
APART: Final = "apart"
"""Calls could not be made together; the one that failed is made alone."""
KEPT: Final = "kept"
"""What has come to the end of its life could not be deleted."""
BEGUN: Final = "begun"
REQUEST_PREFIX: Final = "<agenda> "
"""Begins the request id of a delivery, which no client's request may have: `<agenda> TIME 0 ID`, with 1 in place of 0
for what follows its failure, and ` COUNT` behind it for that of several calls.
"""
UNPLACED: Final = -1
"""The number of the call that has failed among several, if that is not known."""

_encode = msgspec.msgpack.Encoder().encode
_functions: Final[WeakKeyDictionary[Operator, dict[str, FunctionSpec]]] = WeakKeyDictionary()


class _Delivery(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """The arguments: the last part of the entry's key, its id, and the error (type, message) of the attempt. With
    several entries: the ids of those `behind` it, which are the last parts of their keys, and the number of the one
    that `failed`.
    """

    last: str
    id: str
    error: tuple[str, str] | None = None
    behind: tuple[str, ...] = ()
    failed: int = UNPLACED


_decode_delivery = msgspec.msgpack.Decoder(_Delivery).decode


# The requests ----------------------------------------------------------------------------------------------


def delivery_request(
    table: str, key: tuple[str | int, ...], call_id: str, now_us: int, behind: tuple[str, ...] = ()
) -> Request:
    """The request that delivers the entry of `table` under `key`, which has this id, and those `behind` it."""
    entity, last = giver_of(key)
    return _request(owner_of(table), entity, DELIVER_FUNCTION, _Delivery(last, call_id, behind=behind), now_us)


def put_off_request(delivery: Request, now_us: int, error: tuple[str, str], failed: int = UNPLACED) -> Request:
    """The request that puts off the entry of a delivery that has failed; of one of several calls, sets number `failed`
    apart.
    """
    arguments = replace(_decode_delivery(delivery.params), error=error, failed=failed)
    return _request(delivery.operator, delivery.key, PUT_OFF_FUNCTION, arguments, now_us)


def _request(operator: str, entity: Any, function: str, arguments: _Delivery, now_us: int) -> Request:
    number = 0 if function == DELIVER_FUNCTION else 1
    together = f" {len(arguments.behind) + 1}" if arguments.behind else ""
    request_id = f"{REQUEST_PREFIX}{now_us} {number} {arguments.id}{together}"
    return Request(request_id, operator, entity, function, _encode(arguments))


class DeliveryName(NamedTuple):
    """What the request id of a delivery says: its time in microseconds since 1970, whether it puts the call off, the id
    of the call, and how many calls are delivered `together`, of which it is the first.
    """

    now_us: int
    puts_off: bool
    call_id: str
    together: int = 1


def delivery_name(request_id: str) -> DeliveryName | None:
    """What a request id, or a reply's, says; None if it is of no delivery."""
    if not request_id.startswith(REQUEST_PREFIX):
        return None
    now_us, puts_off, call_id, *together = request_id.removeprefix(REQUEST_PREFIX).split(" ")
    return DeliveryName(int(now_us), puts_off == "1", call_id, int(together[0]) if together else 1)


def entry_of(request: Request) -> str:
    """The id of the entry that a delivery, or what follows its failure, is for; of the first of several."""
    return _decode_delivery(request.params).id


# The functions ---------------------------------------------------------------------------------------------


def delivery_function(operator: Operator, name: str) -> FunctionSpec:
    """`DELIVER_FUNCTION` or `PUT_OFF_FUNCTION` of an operator; they are in no operator's `functions`."""
    made = _functions.get(operator)
    if made is None:
        made = _functions[operator] = {}
        for its_name, function in ((DELIVER_FUNCTION, _deliver), (PUT_OFF_FUNCTION, _put_off)):
            spec = made[its_name] = operator.spec(its_name, function)
            spec.decode = _decode_params
    return made[name]


def _decode_params(data: bytes) -> tuple[Any, dict[str, Any]]:
    try:
        return (_decode_delivery(data),), {}
    except (msgspec.DecodeError, ValueError) as error:
        raise BadArguments(f"the arguments of a delivery: {error}") from None


async def _deliver(ctx: Context, wanted: _Delivery) -> str:
    if wanted.behind:
        return _deliver_together(ctx, wanted)
    cell, entry = _standing(ctx, wanted.last, wanted.id)
    if entry is None:
        return WITHDRAWN
    _leave(ctx, cell, entry)
    life = life_of(entry)
    if life is not None:
        return expire(ctx, entry, wanted.last, life)
    if begins(entry):
        return BEGUN
    if is_gone(entry):
        return WITHDRAWN
    call_encoded(ctx, entry.operator, entry.function, entry.key, entry.params)
    return DELIVERED


async def _put_off(ctx: Context, wanted: _Delivery) -> list[Any]:
    assert wanted.error is not None, "what has not failed is not put off"
    if wanted.behind:
        return _set_apart(ctx, wanted, wanted.error)
    cell, entry = _standing(ctx, wanted.last, wanted.id)
    if entry is None:
        return [WITHDRAWN, *wanted.error]
    failed = replace(entry, attempt=entry.attempt + 1)
    now_us = ctx._env.timestamp_us
    if life_of(entry) is not None:
        # What cannot be deleted stays, and so does its entry: it is deleted when nothing keeps it any more.
        cell.write(ctx._chain, encode_entry(replace(failed, due_us=now_us + pause_us(failed))))
        return [KEPT, *wanted.error]
    if failed.attempt < failed.attempts:
        cell.write(ctx._chain, encode_entry(replace(failed, due_us=now_us + pause_us(failed))))
        return [PUT_OFF, *wanted.error]
    _leave(ctx, cell, entry)
    removed = keep_dead(ctx, DeadCall(replace(failed, cron=""), now_us, wanted.error))
    return [DEAD, *wanted.error] if not removed else [DEAD, *wanted.error, removed]


def _leave(ctx: Context, cell: Cell, entry: AgendaEntry) -> None:
    """What stays in the place of an entry that is made or given up: nothing, or a cron's next tick."""
    left = encode_entry(next_entry(entry, ctx._env.timestamp_us, new_id(ctx))) if entry.cron else None
    cell.write(ctx._chain, left)


def _standing(ctx: Context, last: str, its_id: str) -> tuple[Cell, AgendaEntry | None]:
    """The entry's cell, and the entry if it still stands: it may have been withdrawn, or replaced under its name."""
    cell = ctx._cell.sibling(ctx._env, agenda_of(ctx.operator), entry_key(ctx.key, last))
    data = cell.read(ctx._chain)
    if data is None:
        return cell, None
    entry = decode_entry(data)
    return cell, entry if entry.id == its_id else None


# Several calls of one lane ---------------------------------------------------------------------------------


def _all_standing(ctx: Context, wanted: _Delivery) -> list[tuple[Cell, AgendaEntry]]:
    """In the order of the lane. Entries in lanes have no names, and no cron or life."""
    every = [_standing(ctx, its_id, its_id) for its_id in (wanted.id, *wanted.behind)]
    return [(cell, entry) for cell, entry in every if entry is not None]


def _deliver_together(ctx: Context, wanted: _Delivery) -> str:
    """Asynchronous calls run one after the other in the serial order, each with all that it calls: so each call finds
    what it would find alone.
    """
    standing = _all_standing(ctx, wanted)
    for cell, entry in standing:
        cell.write(ctx._chain, None)
        call_encoded(ctx, entry.operator, entry.function, entry.key, entry.params)
    return DELIVERED if standing else WITHDRAWN


def _set_apart(ctx: Context, wanted: _Delivery, error: tuple[str, str]) -> list[Any]:
    """Gives the call that has failed a time, so that it is made alone (`styx.state.due_calls`): all of them if it is
    not known which one that is, as when they are too many or too large together. It is the one when it was given,
    since when it has waited: nothing was tried of it alone.
    """
    standing = _all_standing(ctx, wanted)
    chosen = standing[wanted.failed : wanted.failed + 1] if wanted.failed >= 0 else standing
    for cell, entry in chosen or standing:
        cell.write(ctx._chain, encode_entry(replace(entry, due_us=max(entry.given_us, 1))))
    return [APART, *error, wanted.failed]
