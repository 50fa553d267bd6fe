"""The built-in function that gives a call in a lane of a group, on the entity that holds the lanes of the group: there
the calls of all who emit an event of the group come together.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from styx.model.agenda import AT_ONCE
from styx.model.function_spec import QUEUE_FUNCTION, FunctionSpec
from styx.model.giving import put_entry
from styx.model.subscription import Subscription

if TYPE_CHECKING:
    from styx.model.context import Context


async def queue(ctx: Context, function: str, key: Any, params: bytes, attempts: int, pause_us: int, lane: str) -> None:
    """The built-in function that gives a call of its operator in a lane of a group, on the entity that holds it."""
    put_entry(ctx, AT_ONCE, ctx.operator, function, key, params, attempts, pause_us, lane=lane)


def queue_functions(subscribers: Mapping[str, tuple[Subscription, ...]]) -> dict[Subscription, FunctionSpec]:
    """`queue` on the operator of each subscription with `ordered_by`."""
    of_operator: dict[str, FunctionSpec] = {}
    found: dict[Subscription, FunctionSpec] = {}
    for subscriptions in subscribers.values():
        for each in subscriptions:
            if each.ordered_by is not None:
                name = each.operator.name
                if name not in of_operator:
                    of_operator[name] = each.operator.spec(QUEUE_FUNCTION, queue)
                found[each] = of_operator[name]
    return found
