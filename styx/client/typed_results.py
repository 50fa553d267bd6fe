"""What comes back, as the application declares it: a result as the called function says, rows as their table does.

Everything travels as plain data. A result that does not fit its annotation stays that.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any, Final

import msgspec

from styx.model.signature import Signature
from styx.relational.table import Table
from styx.values.custom_types import dec_hook

_FUNCTIONS_KEPT_MAX: Final = 1_000


def typed_rows(table: Table | str, rows: list[Any]) -> list[Any]:
    """`rows`, which travel as plain data, as objects of the table's row type, if the table is known here."""
    if not isinstance(table, Table):
        return rows
    return msgspec.convert(rows, list[table.row_type.declared], dec_hook=dec_hook, str_keys=True)  # type: ignore[name-defined]


def typed_result(function: Any, result: Any) -> Any:
    """`result`, which travels as plain data, as the return annotation of `function` says, if that is a function.

    It stays plain data where the annotation does not fit.
    """
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
