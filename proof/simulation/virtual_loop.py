"""An asyncio loop on virtual time, for one simulated process that is made of coroutines.

It has tasks, futures, timers and nothing that does I/O. Its clock may run faster than that of the simulation, so that
what waits for seconds in earnest does not make a simulation long.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Coroutine
from contextvars import Context
from typing import Any, Final

from proof.simulation.virtual_time import VirtualTime

LOOK_S: Final = 5.0
"""How long a frozen process looks away at most: it may be thawed before its time."""


class VirtualLoop(asyncio.AbstractEventLoop):
    """Of the loop's seconds `pace` pass in one second of `virtual_time`. Before `stands_until_s`, a virtual time,
    nothing happens: the process is frozen.
    """

    def __init__(self, virtual_time: VirtualTime, pace: float) -> None:
        self.stands_until_s = 0.0
        self._virtual_time = virtual_time
        self._pace = pace
        self._ready: deque[asyncio.Handle] = deque()
        self._ended = False

    def begin(self, coroutine: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """A task of the loop."""
        return asyncio.Task(coroutine, loop=self)

    def end(self, task: asyncio.Task[None]) -> None:
        """The process is killed: `task` ends at once, and no time passes in which it could do more than end."""
        self._ended = True
        task.cancel()
        while self._ready:
            self._run(self._ready.popleft())
        assert task.done(), "a process that is killed waits for something"

    def _pump(self, timer: asyncio.TimerHandle | None = None) -> None:
        """Runs what is ready now; what becomes ready meanwhile has a turn of its own."""
        if self._ended:
            return
        if self._virtual_time.now_s < self.stands_until_s:
            self._virtual_time.at(min(self.stands_until_s, self._virtual_time.now_s + LOOK_S), self._pump, timer)
            return
        if timer is not None:
            self._ready.append(timer)
        for _ in range(len(self._ready)):
            self._run(self._ready.popleft())

    def _run(self, handle: asyncio.Handle) -> None:
        if handle.cancelled():
            return
        before = asyncio._get_running_loop()
        asyncio._set_running_loop(self)
        try:
            handle._run()
        finally:
            asyncio._set_running_loop(before)

    # What tasks ask of their loop ----------------------------------------------------------------------------

    def time(self) -> float:
        return self._virtual_time.now_s * self._pace

    def call_soon(  # type: ignore[override]  # its types of callbacks and their arguments are of no use here
        self, callback: Callable[..., Any], *args: Any, context: Context | None = None
    ) -> asyncio.Handle:
        handle = asyncio.Handle(callback, args, self, context)
        self._ready.append(handle)
        self._virtual_time.after(0.0, self._pump)
        return handle

    def call_later(  # type: ignore[override]  # as above
        self, delay: float, callback: Callable[..., Any], *args: Any, context: Context | None = None
    ) -> asyncio.TimerHandle:
        return self.call_at(self.time() + delay, callback, *args, context=context)

    def call_at(  # type: ignore[override]  # as above
        self, when: float, callback: Callable[..., Any], *args: Any, context: Context | None = None
    ) -> asyncio.TimerHandle:
        handle = asyncio.TimerHandle(when, callback, args, self, context)
        self._virtual_time.at(max(self._virtual_time.now_s, when / self._pace), self._pump, handle)
        return handle

    def create_future(self) -> asyncio.Future[Any]:
        return asyncio.Future(loop=self)

    def create_task(self, coro: Any, *, name: str | None = None, context: Context | None = None) -> asyncio.Task[Any]:
        return asyncio.Task(coro, loop=self, name=name, context=context)

    def call_exception_handler(self, context: dict[str, Any]) -> None:
        error = context.get("exception")
        if error is not None and not self._ended:
            raise error

    def _timer_handle_cancelled(self, handle: asyncio.TimerHandle) -> None:
        """It is passed over when it is due."""

    def get_debug(self) -> bool:
        return False

    def is_running(self) -> bool:
        return True

    def is_closed(self) -> bool:
        return False
