"""What a function waits for: the objects that its context yields to whoever runs it. Decides nothing."""

from __future__ import annotations

import types
from collections.abc import Callable, Generator
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from styx.made_call import MadeCall

if TYPE_CHECKING:
    from styx.context import Context


class SyncCall(NamedTuple):
    """Yielded to the executor: run call `number` of this context and resume me with its encoded result."""

    context: Context
    number: int
    call: MadeCall


class ExternalCall(NamedTuple):
    """Yielded to the executor: resume me with this outside function's encoded result."""

    context: Context
    key: bytes
    function: Callable[..., Any]
    args: tuple[Any, ...]


@types.coroutine
def suspend(request: SyncCall | ExternalCall) -> Generator[SyncCall | ExternalCall, bytes, bytes]:
    return (yield request)


@types.coroutine
def _nothing() -> Generator[Any, Any, None]:
    return
    yield


DONE: Final = _nothing()
"""What `put` and `delete` return. A generator that has ended gives None to everybody who awaits it, at once and without
an object for each; anything else that can be awaited costs several times as much.
"""
next(DONE, None)
