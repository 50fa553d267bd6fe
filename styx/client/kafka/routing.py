"""Where requests go: from an operator and a key to the checked key and its slot, by the app's code or by its table.

Both send what the app does not have to slot 0, whose worker rejects it, so that it has an ordinary reply. It never
reads a topic.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

from styx.errors import BadArguments
from styx.model.app import App
from styx.model.operator import Operator
from styx.model.partitioning import Key, stable_hash
from styx.schema.description import RoutingTable, parse_key_type


class Router(ABC):
    """Knows the operators of one app on `n_slots` slots."""

    def __init__(self, n_slots: int) -> None:
        self.n_slots = n_slots

    def place(self, operator: Operator | str, key: Any) -> tuple[Key, int]:
        """The checked key and its slot; an `Operator` itself knows best. Raises `BadKey`."""
        return (
            place(operator, key, self.n_slots) if isinstance(operator, Operator) else self.place_by_name(operator, key)
        )

    @abstractmethod
    def place_by_name(self, operator: str, key: Any) -> tuple[Key, int]:
        """As `place`."""

    @abstractmethod
    def require_exact(self, operator: str) -> None:
        """Raises `BadArguments` if an operator's slots can only be guessed here, saying what to do."""


class AppRouter(Router):
    """Routes with the code of the app."""

    def __init__(self, app: App, n_slots: int) -> None:
        super().__init__(n_slots)
        self._operators = app.operators

    def place_by_name(self, operator: str, key: Any) -> tuple[Key, int]:
        """As `Router.place_by_name`."""
        declared = self._operators.get(operator)
        return (key, 0) if declared is None else place(declared, key, self.n_slots)

    def require_exact(self, operator: str) -> None:
        """It always is."""


class TableRouter(Router):
    """Routes with what is published of an app.

    A slot is a guess where an operator has its own `partition_key`; a wrong one costs a round trip, since the worker
    sends the request back.
    """

    def __init__(self, table: RoutingTable, n_slots: int) -> None:
        super().__init__(n_slots)
        self._exact = {name: not route.partition_key for name, route in table.operators.items()}
        self._places = {
            name: (parse_key_type(route.key_type).check, route.n_partitions or n_slots)
            for name, route in table.operators.items()
        }

    def place_by_name(self, operator: str, key: Any) -> tuple[Key, int]:
        """As `Router.place_by_name`."""
        place = self._places.get(operator)
        if place is None:
            return key, 0
        check, n_partitions = place
        checked = check(key, operator)
        return checked, stable_hash(checked) % n_partitions % self.n_slots

    def require_exact(self, operator: str) -> None:
        """As `Router.require_exact`."""
        if not self._exact.get(operator, True):
            raise BadArguments(
                f"operator {operator!r} has its own partition_key, which only the app's code knows: "
                "connect with the App instead of its name, or give the Operator"
            )


def place(operator: Operator, key: Any, n_slots: int) -> tuple[Key, int]:
    """The checked key and its slot; raises `BadKey`."""
    keys = operator.key_space
    checked = keys.check(key)
    return checked, keys.slot_of(checked, n_slots)
