"""Who sends a request, once that is proved; and the ways in which it is not. Declarations only."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple


class Identity(NamedTuple):
    """`name` is for rules, logs and people; `source` says where limits are counted, by key or by token's subject.

    `claims` are a token's, None for an API key. `rate` in requests a second and `in_flight` are its own limits; None:
    those of the gateway.
    """

    name: str
    source: str
    claims: Mapping[str, Any] | None = None
    rate: float | None = None
    in_flight: int | None = None


class NotProved(Exception):
    """A credential that proves nothing. Its text goes to whoever sent it, and says nothing of what is in it."""


class CannotTell(Exception):
    """It cannot be told at the moment, because signing keys are not there yet."""


class UnknownKey(NotProved):
    """A token signed by a key that is not known, or not yet."""
