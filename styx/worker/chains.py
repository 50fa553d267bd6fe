"""Synchronous chains of a transaction, as visibility knows them: a chain's id is the path of its outermost function."""

from __future__ import annotations

from typing import Final

SEQUENTIAL_CHAIN: Final = b""
"""Visibility chain of a transaction in sequential mode: every branch sees everything before it."""


def concurrent(a: bytes, b: bytes) -> bool:
    """Whether neither chain is above the other in the call graph."""
    return not a.startswith(b) and not b.startswith(a)
