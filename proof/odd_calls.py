"""Requests whose calls are synchronous in one run and asynchronous, or of another function, in the next one: the number
that is found decides.

A lock phase that runs such a transaction again meets another kind of call at the same path. The programs are those of
`proof.chaos_app`, whose calls have the mode "odd" then.
"""

from __future__ import annotations

from random import Random
from typing import Any, Final

import msgspec

from styx.messages import Request

CALLS: Final = ("call", "carry", "look", "fresh")
"""Steps that make a call; the mode is their first operand."""
ODD: Final = 0.5
"""Share of a request's calls that become odd."""

_encode = msgspec.msgpack.Encoder().encode


def arguments_of(request: Request) -> list[Any] | None:
    """The arguments of a request whose first one is to be a program; None if it has none."""
    if request.function not in ("run", "hot", "near", "look"):
        return None
    try:
        arguments = msgspec.msgpack.decode(request.params)
    except msgspec.DecodeError:
        return None
    return arguments if isinstance(arguments, list) and arguments else None


def with_odd_calls(request: Request, rng: Random) -> Request:
    """The request with some of its calls made odd; the same request if it has no program."""
    arguments = arguments_of(request)
    if arguments is None:
        return request
    return msgspec.structs.replace(request, params=_encode([_odd(arguments[0], rng), *arguments[1:]]))


def _odd(operand: Any, rng: Random) -> Any:
    """An operand, a step or a program with such calls."""
    if not isinstance(operand, list):
        return operand
    changed = [_odd(each, rng) for each in operand]
    if changed and changed[0] in CALLS and rng.random() < ODD:
        changed[1] = "odd"
    return changed
