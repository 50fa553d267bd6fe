"""Results converted to the called function's return annotation, for callers that pass the function itself.

Results travel as plain data. If the annotation does not fit, or no value can be converted to it, the result stays plain
data.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any, Final

import msgspec

from styx.model.signature import Signature
from styx.values.custom_types import dec_hook

_FUNCTIONS_KEPT_MAX: Final = 1_000


def typed_result(function: Any, result: Any) -> Any:
    """`result` as `function` declares it, if that is a function."""
    if isinstance(function, str) or not callable(function):
        return result
    declared = _declared(function)
    if declared is Any or declared is None:
        return result
    for str_keys in (False, True):  # what came as JSON has no other keys
        try:
            return msgspec.convert(result, declared, dec_hook=dec_hook, str_keys=str_keys)
        except Exception:  # noqa: BLE001 - a type's own code can run here, and an annotation is a wish, not a check
            continue
    return result


@lru_cache(_FUNCTIONS_KEPT_MAX)
def _declared(function: Callable[..., Any]) -> Any:
    try:
        return Signature(function.__name__, function).result_type
    except Exception:  # noqa: BLE001 - it may be no registered function at all: the engine says so
        return Any
