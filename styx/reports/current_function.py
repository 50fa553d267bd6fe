"""The function that runs when a log record or a warning is made: searched on the stack, and only then."""

from __future__ import annotations

from inspect import CO_COROUTINE
from types import FrameType
from typing import Any, Final, NamedTuple

from styx.model.context import Context

DEPTH_MAX: Final = 100
"""Frames looked at."""


class Running(NamedTuple):
    """A function of an operator, in one of its runs, which may not be the one that counts."""

    operator: str
    key: Any
    function: str
    tid: int


def running(frame: FrameType | None) -> Running | None:
    """The innermost function among `frame` and its callers; None if there is none."""
    for _ in range(DEPTH_MAX):
        if frame is None:
            return None
        code = frame.f_code
        if code.co_flags & CO_COROUTINE and code.co_argcount:
            context = frame.f_locals.get(code.co_varnames[0])
            if isinstance(context, Context):
                spec = context._spec
                return Running(spec.operator, context._key, spec.name, context._env.tid)
        frame = frame.f_back
    return None
