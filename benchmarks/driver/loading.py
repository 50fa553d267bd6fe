"""Loads a part of a workload's data set: states of an operator's entities, or rows of a table."""

from __future__ import annotations

from benchmarks.driver.workload import Loading
from styx.client.base import Client
from styx.model.limits import TIMEOUT_SECONDS_DEFAULT


async def load(client: Client, loading: Loading, timeout_s: float = TIMEOUT_SECONDS_DEFAULT) -> None:
    """Loads all pairs, and replaces what exists. `timeout_s` is a chunk's. Raises `LoadFailed`."""
    if loading.table is None:
        await client.load(loading.operator, loading.pairs, replace=True, timeout=timeout_s)
    else:
        await client.load_rows(loading.table, loading.pairs, replace=True, timeout=timeout_s)
