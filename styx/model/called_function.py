"""Which function a call names, looked for where the hot path has not found it."""

from __future__ import annotations

from typing import Any

from styx.errors import UnknownFunction
from styx.model.app import App
from styx.model.function_spec import FunctionSpec


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
