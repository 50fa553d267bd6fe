"""The settings of the application that are the same for all requests, from the environment of its process."""

from __future__ import annotations

import os
from typing import Final

from styx import ConfigurationError


def chosen(variable: str, choices: tuple[str, ...]) -> str:
    """The value of an environment variable, the first choice if it is not set. Raises `ConfigurationError`."""
    value = os.environ.get(variable) or choices[0]
    if value not in choices:
        raise ConfigurationError(f"{variable} is {' or '.join(choices)}: got {value!r}")
    return value


def number(variable: str, default: float, least: float, most: float) -> float:
    """The value of an environment variable as a number from `least` to `most`. Raises `ConfigurationError`."""
    text = os.environ.get(variable) or str(default)
    try:
        value = float(text)
    except ValueError:
        value = float("nan")
    if not least <= value <= most:
        raise ConfigurationError(f"{variable} is a number from {least:g} to {most:g}: got {text!r}")
    return value


ARCHIVE: Final = chosen("MARKETPLACE_ARCHIVE", ("on", "off")) == "on"
"""Whether what has ended is archived as events."""
REPLICATION: Final = chosen("MARKETPLACE_REPLICATION", ("together", "seller", "object", "eventual"))
"""How the carts' copies follow the products."""
REPRICE: Final = chosen("MARKETPLACE_REPRICE", ("checkout", "carts"))
"""Whether a new price waits for the checkout, or also comes to the open carts that hold the product."""
PAYMENT: Final = chosen("MARKETPLACE_PAYMENT", ("after", "together"))
"""Whether a payment is a transaction of its own, or the end of its checkout's."""
PROVIDER: Final = os.environ.get("MARKETPLACE_PROVIDER", "")
"""The payment provider's URL; without one the decision is computed."""
REJECTED: Final = number("MARKETPLACE_REJECTED", 0, 0, 100)
"""The percentage of payments that is rejected if there is no provider."""
SEED: Final = int(number("MARKETPLACE_SEED", 1, 0, 2**53))
"""Decides which ones."""

if PROVIDER and PAYMENT == "together":
    raise ConfigurationError(
        "MARKETPLACE_PAYMENT=together and MARKETPLACE_PROVIDER exclude each other: a checkout that runs again, after a "
        "conflict, could ask the provider for another amount, and what it was charged first would stay"
    )
