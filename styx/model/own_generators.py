"""Asynchronous generators of the app's functions end where they are dropped, inside of the function that dropped them.

An event loop hooks them, and runs what is left of one (a `finally` behind `async for … break`) later, as a task of its
own: outside of any transaction, unseen by the watchdog, and never in a replay. Runs nothing itself.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")
A = TypeVar("A")


def with_own_generators(run: Callable[[A], T], argument: A) -> T:
    """`run(argument)`, which drives functions of the app's; what it raises."""
    hooks = sys.get_asyncgen_hooks()
    sys.set_asyncgen_hooks(None, None)
    try:
        return run(argument)
    finally:
        sys.set_asyncgen_hooks(*hooks)
