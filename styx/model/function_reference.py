"""A reference to a registered function: its operator and its name, `cart.checkout`.

A function may be registered on several operators, and then the function alone does not say which one is meant. A
reference does. It stands for the function wherever a function or its name is taken, and calls nothing by itself.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from styx.errors import ConfigurationError
from styx.values.codec import shown


@dataclass(frozen=True, slots=True)
class FunctionReference:
    """The function `name` of the operator of that name; as a text, `cart.checkout`."""

    operator: str
    name: str

    @property
    def __name__(self) -> str:
        return self.name

    def __str__(self) -> str:
        return f"{self.operator}.{self.name}"


def reference_of(wanted: Any) -> FunctionReference | None:
    """The reference that was given, or its text "cart.checkout"; None for a function by itself, which says no operator.

    Raises `ConfigurationError` for anything else.
    """
    if isinstance(wanted, FunctionReference):
        return wanted
    if isinstance(wanted, str):
        operator, dot, name = wanted.rpartition(".")  # an operator's name may have dots, a function's has none
        if operator and dot and name:
            return FunctionReference(operator, name)
    elif callable(wanted) and not isinstance(wanted, type):
        return None
    raise ConfigurationError(
        "a function is named as cart.checkout, where cart is the operator, as the text 'cart.checkout', or by itself "
        f"if one operator has it: got {shown(wanted)}"
    )
