"""Which function a call names, looked for where the hot path has not found it, and whether its caller may call it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from styx.errors import UnknownFunction
from styx.model import read_only
from styx.model.app import App
from styx.model.function_spec import FunctionSpec

if TYPE_CHECKING:
    from styx.model.context import Context


def called_function(app: App, operator: Any, function: Any, key: Any) -> FunctionSpec:
    """The function that a call names, by name or by itself. Raises `UnknownOperator` or `UnknownFunction`, which says
    so if key and function were given in the wrong order.
    """
    try:
        return app.resolve(operator, function)
    except UnknownFunction as error:
        if not app.operator(operator).has(key):
            raise
        raise UnknownFunction(
            f"{error}. Here the function comes before the key: ctx.call(operator, function, key, params)"
        ) from None


def permitted(context: Context, function: FunctionSpec) -> FunctionSpec:
    """The function that a bounded caller calls: `function` itself, or that at its place in the caller's graph.

    Raises `ReadOnlyViolation` or `OutsideGraph`.
    """
    caller = context._spec
    if caller.read_only and not function.read_only:
        raise read_only.called(context._where(), caller.name, f"{function.operator}.{function.name}")
    if caller.graph is None:
        return function
    callee: FunctionSpec = caller.graph.callee(context, function)
    return callee
