"""The worker's pass: once a turn of the event loop, events go into the core until it is quiet, and its effects out.

All work of the protocol happens in a pass, signs of life included: a worker whose passes have stopped, for any reason,
is silent, and is replaced. Any exception in a pass ends the registration and is logged.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable

from styx.model.execution import with_own_generators
from styx.worker.events import Effect, Event, Proceed
from styx.worker.worker import Worker

EVENT_TEXT_CHARS_MAX = 2000
"""How much of an event stands in the report of a failed pass."""


class Passes:
    """Gives `core` its events, by `step`. `do` carries out an effect, `after` ends each pass, and `failed` gets what a
    pass raised.

    `turn` is odd within a pass, and another number in each.
    """

    def __init__(
        self,
        core: Worker,
        step: Callable[[Event], list[Effect]],
        do: Callable[[Effect], None],
        after: Callable[[], None],
        failed: Callable[[BaseException], None],
    ) -> None:
        self.core = core
        self.stopped = False
        self.turn = 0
        self._step = step
        self._do = do
        self._after = after
        self._failed = failed
        self._loop = asyncio.get_running_loop()
        self._events: deque[Event] = deque()
        self._scheduled = False
        self._proceed = Proceed()

    def give(self, event: Event) -> None:
        """The event happens to the worker in the next pass."""
        self._events.append(event)
        self.wake()

    def discard(self) -> None:
        """What has not happened yet never will: it belongs to a generation that is over, and its effects would be done
        with what the next one has.
        """
        self._events.clear()

    def wake(self) -> None:
        """Another pass, soon."""
        if not (self._scheduled or self.stopped):
            self._scheduled = True
            self._loop.call_soon(self._pass)

    def stop(self) -> None:
        """No pass begins any more."""
        self.stopped = True
        self._events.clear()

    def _pass(self) -> None:
        self._scheduled = False
        if self.stopped:
            return
        core, step, events, do = self.core, self._step, self._events, self._do
        event: Event = self._proceed
        self.turn += 1
        try:
            while events:
                event = events.popleft()
                for effect in with_own_generators(step, event):
                    do(effect)
            if core.runnable:
                event = self._proceed
                for effect in with_own_generators(step, event):
                    do(effect)
            self._after()
        except BaseException as error:
            self.turn += 1
            text = repr(event)
            error.add_note(f"while taking {text[:EVENT_TEXT_CHARS_MAX]}")
            self._failed(error)
            if not isinstance(error, Exception):
                raise
            return
        self.turn += 1
        if core.runnable or events:
            self.wake()
