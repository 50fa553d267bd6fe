"""The read of one entity: the built-in function behind `client.entity` and `GET /v1/{operator}/{key}`.

A read is an ordinary request for this function. It goes through the log and has its place in the serial order like any
other, so that it is strictly serializable: it sees every transaction answered before it was sent, and nothing that is
taken back later. Only the state type's own code runs in it.
"""

from __future__ import annotations

from typing import Any, Final
from weakref import WeakKeyDictionary

from styx.errors import UnknownEntity
from styx.messages import Reply, ReplyError
from styx.model.context import Context
from styx.model.function_spec import READ_FUNCTION, FunctionSpec, Hints
from styx.model.operator import Operator
from styx.values.codec import shown

UNKNOWN_ENTITY: Final = "unknown_entity"
"""The code of a read that found no state."""

_ABSENT: Final = object()
_READ_ONLY: Final = Hints(read_only=True)
_functions: Final[WeakKeyDictionary[Operator, FunctionSpec]] = WeakKeyDictionary()


async def _read(ctx: Context) -> Any:
    state = await ctx.get(_ABSENT)
    if state is _ABSENT:
        tables = ctx._env.app.operator(ctx.operator).tables
        hint = (
            f"; its rows, if it has any, are read by table: client.rows or ?rows={next(iter(tables))}" if tables else ""
        )
        raise UnknownEntity(f"{ctx.operator}[{shown(ctx.key)}] has no state{hint}")
    return state


def read_function(operator: Operator) -> FunctionSpec:
    """The read of an operator; it is in no operator's `functions`, so nothing can call it from inside a transaction."""
    function = _functions.get(operator)
    if function is None:
        function = _functions[operator] = operator.spec(READ_FUNCTION, _read, _READ_ONLY)
    return function


def found_nothing(kind: str) -> bool:
    """Whether a read that ended with an error of type `kind` says that there is no such entity."""
    return kind == UnknownEntity.__name__


def reply_of_read(reply: Reply) -> Reply:
    """A read's reply as clients get it: one that found no state has the code `unknown_entity`."""
    error = reply.error
    if error is None or not found_nothing(error.type):
        return reply
    return reply._replace(error=ReplyError(error.type, error.message, UNKNOWN_ENTITY))


def state_in(reply: Reply) -> Any:
    """The state that a read's reply gives, None if there is none; raises what `Reply.unwrap` raises."""
    error = reply.error
    return None if error is not None and error.code == UNKNOWN_ENTITY else reply.unwrap()
