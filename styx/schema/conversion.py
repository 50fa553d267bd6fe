"""Conversion of state that an earlier version stored to the form of the app's code, by `migrate=`.

The same state always gives the same result, however often and wherever it is converted. Pure; the given tables are not
changed.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from styx.errors import EngineFailed
from styx.model.app import App
from styx.model.limits import Limits
from styx.schema.state_reading import Misfit, StateReader, entity_name

Converted = dict[str, dict[Any, bytes]]


class NotConverted(EngineFailed):
    """An entity cannot be converted, although the check before has passed it."""


def converts(app: App) -> bool:
    """Whether the app has anything to convert state with."""
    return any(operator.migration is not None for operator in app.operators.values())


def converted(app: App, tables: Mapping[str, Mapping[Any, bytes]], limits: Limits) -> Converted:
    """The entities that had to be converted, by operator. Raises `NotConverted` naming the entity."""
    changed: Converted = {}
    for name, operator in app.operators.items():
        table = tables.get(name)
        if operator.migration is None or not table:
            continue
        new = _converted(StateReader(operator, limits.value_bytes_max), table)
        if new:
            changed[name] = new
    return changed


def _converted(reader: StateReader, table: Mapping[Any, bytes]) -> dict[Any, bytes]:
    new: dict[Any, bytes] = {}
    for key, data in table.items():
        try:
            reading = reader.read(data)
        except Misfit as error:
            raise NotConverted(
                f"{entity_name(reader.operator.name, key)}{error}: when the version was deployed, it could be "
                "converted, so migrate= uses more than the value that it is given"
            ) from None
        if reading.data is not None:
            new[key] = reading.data
    return new
