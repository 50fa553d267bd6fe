"""What exists only to be compiled: a coroutine's first step, and a copy of the limits that a transaction meets."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any

import msgspec

from styx.model.limits import Limits
from styx.native.interpreted import Steps, native, steps


class FirstSteps:
    """A coroutine's first step, without the `StopIteration` by which a coroutine driven by hand returns its result.

    A coroutine passes its result directly to the coroutine that awaits it; only `send` turns the result into a
    `StopIteration`, which costs more than many functions. So the engine drives an endless generator, which awaits one
    coroutine after the other. Most functions end in their first step. A coroutine that waits keeps its generator, which
    must live as long as the coroutine, and is driven directly from then on.

    `take(coroutine)` gives RETURNED, with the coroutine's result in `result[0]`, or what the coroutine yielded, or
    raises what it raised. The caller takes the result out and leaves None there, so that the result is not freed while
    the next function runs. `renew` must be called after anything but RETURNED, before the next coroutine is taken.
    """

    __slots__ = ("_steps", "result", "take")

    def __init__(self) -> None:
        self.result: list[Any] = [None]
        self._begin()

    def _begin(self) -> None:
        self._steps = steps(self.result)
        self.take: Callable[[Coroutine[Any, Any, Any]], Any] = self._steps.send
        next(self._steps)

    def renew(self) -> Steps:
        """Gives the generator used so far: a coroutine that waits needs it to be kept."""
        used = self._steps
        self.result[0] = None
        self._begin()
        return used


@native
class TransactionLimits(msgspec.Struct, eq=False, gc=False):
    """The limits that a running transaction meets, as its contexts ask for them at every step: the fields of the same
    names of `Limits`, which is not compiled. Compiled code reads its own records faster. Paper section 3.
    """

    value_bytes_max: int
    call_depth_max: int
    invocations_max: int
    operations_max: int
    external_calls_max: int
    transaction_bytes_max: int
    call_bytes: int
    rows_per_query_max: int


def transaction_limits(limits: Limits) -> TransactionLimits:
    """Those of a deployment."""
    return TransactionLimits(
        limits.value_bytes_max,
        limits.call_depth_max,
        limits.invocations_max,
        limits.operations_max,
        limits.external_calls_max,
        limits.transaction_bytes_max,
        limits.call_bytes,
        limits.rows_per_query_max,
    )


def calls_more(data: bytes, limits: TransactionLimits) -> int:
    """How many calls a call counts as beyond one, with arguments or a result of this size (`Limits.call_bytes`)."""
    return len(data) // limits.call_bytes
