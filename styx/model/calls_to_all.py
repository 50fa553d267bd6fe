"""The calls of one partition function on all partitions of an operator, which are made together.

They have the same arguments, encoded once. They count together, before the first of them runs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from styx.errors import CallLimitExceeded
from styx.model.call_limit import call_limit_error
from styx.model.function_spec import MadeCall
from styx.model.limits import CALLS_PER_FUNCTION_MAX
from styx.native.compiled import calls_more

if TYPE_CHECKING:
    from styx.model.context import Context


def calls_to_all(context: Context, synchronous: bool, operator: Any, function_name: Any, params: Any) -> list[MadeCall]:
    """The calls by the partition's number, counted, and not yet among those of the context.

    Raises what a call raises.
    """
    if context._left < 0:
        context._refuse()
    env = context._env
    try:
        partitions = env.app.operator(operator).partitions
        name, count = partitions.function(function_name).name, partitions.numbers.count(env.n_slots)
    except BaseException as error:  # noqa: BLE001 - comparing what was given can run code of the app
        raise context._doomed(error) from None
    first = context._made_call(synchronous, partitions, name, 0, params)
    if len(context._made) + count > CALLS_PER_FUNCTION_MAX:
        raise context._doomed(CallLimitExceeded(f"{context._where()} made more than {CALLS_PER_FUNCTION_MAX} calls"))
    called = context._called + (count - 1) * (1 + calls_more(first.params, env.limits))
    if called > env.limits.invocations_max:
        raise context._doomed(call_limit_error(env.limits, first.params))
    context._called = called
    keys, function, data = first.function.keys, first.function, first.params
    others = [
        MadeCall(synchronous, keys.slot_of(number, env.n_slots), function, number, data) for number in range(1, count)
    ]
    return [first, *others]
