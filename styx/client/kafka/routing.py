"""Where requests go for a client without the app's code: to the slots that its published routing table says."""

from __future__ import annotations

from typing import Any

from styx.errors import BadArguments
from styx.model.operator import Operator
from styx.model.partitioning import Key, stable_hash
from styx.model.request import Router
from styx.schema.description import RoutingTable, parse_key_type


class TableRouter(Router):
    """Routes with what is published of an app, over `n_slots` slots.

    A slot is a guess where an operator has its own `partition_key`; a wrong one costs a round trip, since the worker
    sends the request back.
    """

    def __init__(self, table: RoutingTable, n_slots: int) -> None:
        self._n_slots = n_slots
        self._exact = {name: not route.partition_key for name, route in table.operators.items()}
        self._places = {
            name: (parse_key_type(route.key_type).check, route.n_partitions or n_slots)
            for name, route in table.operators.items()
        }

    def place(self, operator: Operator | str, key: Any, function: str = "") -> tuple[Key, int]:
        """As `Router.place`."""
        if isinstance(operator, Operator):
            return key, operator.key_space.slot_of(key, self._n_slots)
        place = self._places.get(operator)
        if place is None:
            return key, 0
        check, n_partitions = place
        checked = check(key, operator)
        return checked, stable_hash(checked) % n_partitions % self._n_slots

    def require_exact(self, operator: str) -> None:
        """Raises `BadArguments` if an operator's slots can only be guessed here, saying what to do."""
        if not self._exact.get(operator, True):
            raise BadArguments(
                f"operator {operator!r} has its own partition_key, which only the app's code knows: "
                "connect with the App instead of its name, or give the Operator"
            )
