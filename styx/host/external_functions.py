"""Runs external functions: coroutine functions as tasks on the engine's loop, all others on one of a few threads."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from functools import partial
from typing import Any, Final

import msgspec

from styx.errors import ValueTooLarge, describe
from styx.model.limits import Limits
from styx.protocol.frames import ExternalOutcome
from styx.values.codec import encode_any
from styx.worker.events import RunExternal

THREADS_MAX: Final = 16
"""Plain external functions that run at once; further ones wait."""
KEY_PARAMETER: Final = "idempotency_key"

_encode = msgspec.msgpack.Encoder().encode


class ExternalFunctions:
    """Runs what `RunExternal` asks for; `Limits.parked_max` bounds how many.

    `failed` gets what went wrong here rather than in an external function, `raised` what the function raised.
    """

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        limits: Limits,
        failed: Callable[[str, BaseException], None],
        raised: Callable[[RunExternal, BaseException], None],
    ) -> None:
        self._loop = loop
        self._limits = limits
        self._failed = failed
        self._raised = raised
        self._tasks: set[asyncio.Task[None]] = set()
        self._threads: ThreadPoolExecutor | None = None
        self._stopped = False
        self._variables = copy_context()

    def run(self, wanted: RunExternal, ended: Callable[[bytes], None]) -> None:
        """As `External.run`; `ended` is called on the loop."""
        if self._stopped:
            return
        # Whatever called this may have gone on from another external function's end, and see the variables it has set.
        task = self._loop.create_task(
            self._attempt(wanted, ended), name=f"styx-external-{wanted.key.hex()}", context=self._variables.copy()
        )
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def stop(self) -> None:
        """Ends the tasks; threads end by themselves, and what they give is not taken."""
        self._stopped = True
        for task in self._tasks:
            task.cancel()
        if self._threads is not None:
            self._threads.shutdown(wait=False, cancel_futures=True)

    async def _attempt(self, wanted: RunExternal, ended: Callable[[bytes], None]) -> None:
        try:
            outcome = await self._outcome(wanted)
            if not self._stopped:
                ended(_encode(outcome))
        except asyncio.CancelledError:
            raise
        except BaseException as error:  # noqa: BLE001 - the engine's own fault: the function's are in the outcome
            self._failed("taking an external function's outcome", error)

    async def _outcome(self, wanted: RunExternal) -> ExternalOutcome:
        try:
            value = await self._called(wanted)
            data = encode_any(value, f"the result of {_name(wanted.function)}")
            if len(data) > self._limits.value_bytes_max:
                raise ValueTooLarge(
                    f"the result of {_name(wanted.function)} has {len(data)} bytes; the limit is "
                    f"{self._limits.value_bytes_max}: return less"
                )
        except BaseException as error:
            if self._stopped and isinstance(error, asyncio.CancelledError):
                raise
            self._raised(wanted, error)
            return ExternalOutcome(None, describe(error))
        return ExternalOutcome(data)

    async def _called(self, wanted: RunExternal) -> Any:
        call = partial(wanted.function, *wanted.args, **_key_argument(wanted))
        if inspect.iscoroutinefunction(wanted.function):
            return await call()
        if self._threads is None:
            self._threads = ThreadPoolExecutor(THREADS_MAX, thread_name_prefix="styx-external")
        value = await self._loop.run_in_executor(self._threads, copy_context().run, _call, call)
        if isinstance(value, BaseException):
            raise value
        return await value if inspect.isawaitable(value) else value


def _call(call: Callable[[], Any]) -> Any:
    """On a thread. An exception comes back as a value, because a future does not carry every kind of it."""
    try:
        return call()
    except BaseException as error:  # noqa: BLE001 - whatever it is, it is the function's outcome
        return error


def _key_argument(wanted: RunExternal) -> dict[str, str]:
    try:
        parameters = inspect.signature(wanted.function).parameters
    except (TypeError, ValueError):
        return {}
    return {KEY_PARAMETER: wanted.key.hex()} if KEY_PARAMETER in parameters else {}


def _name(function: Callable[..., Any]) -> str:
    return getattr(function, "__qualname__", type(function).__name__)
