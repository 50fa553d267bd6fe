"""The operators of the clusters. A request's operator decides its cluster: each cluster has a copy of the app's
operator, with the same name.
"""

from __future__ import annotations

from copy import copy
from functools import cache

from benchmarks.ycsbt.bank import account
from styx.model.operator import Operator


@cache
def operators(clusters: int) -> tuple[Operator, ...]:
    """One for each cluster; in one process always the same, so that a generator and a target mean the same by them."""
    return tuple(copy(account) for _ in range(clusters))
