"""Interrupts a function that runs on another thread, from outside, and never any other code that runs there.

The interpreter raises an exception in the other thread, at its next instruction that checks for one. The engine records
which function runs (`styx.worker.invocation`). This record is read and the exception ordered without another thread
running in between, because nothing there releases the interpreter. As soon as the function has ended, the engine
withdraws an exception that was not raised yet. If a function catches the exception and goes on, the exception orders
itself anew, so that no handler gets far.
"""

from __future__ import annotations

import ctypes
import gc
from collections.abc import Callable
from functools import partial
from typing import Any, Final

from styx.errors import FunctionTooLong
from styx.worker.invocation import Invocation, Running

_PROTOTYPE: Final = ("PyThreadState_SetAsyncExc", ctypes.pythonapi)
_order = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_ulong, ctypes.py_object)(_PROTOTYPE)
_order_again = ctypes.PYFUNCTYPE(None, ctypes.c_ulong, ctypes.py_object)(_PROTOTYPE)
_take_back = ctypes.PYFUNCTYPE(None, ctypes.c_ulong, ctypes.c_void_p)(_PROTOTYPE)


class Interrupted(BaseException):
    """Raised in a function that is ended. Its transaction ends whatever the function makes of it."""


class Interruption:
    """Interrupts functions on one thread."""

    def __init__(self, thread_id: int) -> None:
        self._thread = ctypes.c_ulong(thread_id)
        # In C, all of it: an instruction of Python's would be the place where it happens.
        self.withdraw: Callable[[], Any] = partial(_take_back, self._thread, None)

        class InterruptedAgain(Interrupted):
            """Being made anew, as each handler does, it orders itself anew; until it is taken back."""

        InterruptedAgain.__name__ = InterruptedAgain.__qualname__ = Interrupted.__name__
        again = partial(_order_again, self._thread, ctypes.py_object(InterruptedAgain))
        setattr(InterruptedAgain, "__init__", staticmethod(again))  # noqa: B010 - it is no method
        self._again = InterruptedAgain

    def interrupt(self, running: Running, invocation: Invocation, error: FunctionTooLong, *, again: bool) -> bool:
        """Ends the invocation if it still runs; whether it did. `again`: it has gone on behind an earlier one."""
        thread, order = self._thread, _order
        kind = ctypes.py_object(self._again if again else Interrupted)
        collects = gc.isenabled()
        gc.disable()  # whatever the collector calls could let another thread run
        try:
            running.withdraw = self.withdraw
            # From here to the order nothing is called, and so no other thread runs.
            if running.invocation is not invocation:
                return False
            before = invocation._doom  # kept until after the order: its finalizer could let another thread run
            invocation._doom = error
            running.cut = True
            order(thread, kind)
            del before
            return True
        finally:
            if collects:
                gc.enable()
