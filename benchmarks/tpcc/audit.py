"""The audit of a run: it reads all rows by ordinary requests, and compares them with the conditions and the ledger.

`auditor.py` reads the rows. The witnesses have the clients' replies. Without witnesses the audit checks the consistency
conditions, and the rows that must be as they were loaded.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from benchmarks.driver.workload import Audit
from benchmarks.tpcc.auditor import Auditor
from benchmarks.tpcc.mixes import MIXES, STANDARD
from benchmarks.tpcc.rows_found import Unreadable
from benchmarks.tpcc.settings import Settings
from benchmarks.tpcc.told import Told
from styx.client.base import Client


async def audit(client: Client, settings: Settings, witnesses: Sequence[Mapping[str, Any]]) -> Audit:
    """Reads and compares. The clients must have ended: what they still send is in no witness."""
    told = Told(witnesses)
    auditor = Auditor(client, settings, told)
    try:
        await auditor.read_all()
    except Unreadable as error:
        auditor.violations.add([f"unread: the audit ended early, at {error}"])
    return Audit(_checked(settings, told, auditor.counts), [*_noted(told), *auditor.violations.told()])


def _noted(told: Told) -> list[str]:
    more = told.counts["violations"] - len(told.noted)
    return [*told.noted, f"and {more} replies more that no serial order can give"] if more > 0 else [*told.noted]


def _checked(settings: Settings, told: Told, counts: Counter[str]) -> list[str]:
    rows = ", ".join(f"{count} {table}" for table, count in counts.items())
    checked = [
        f"all rows of {settings.warehouses} warehouses ({rows}): the consistency conditions of clause 3.3.2, and what "
        "no transaction writes is as it was loaded"
    ]
    if not told.witnessed:
        return checked
    kinds = ", ".join(f"{told.counts[kind]} {kind}" for kind in MIXES[STANDARD])
    checked += [
        f"every order, line, payment, delivery and row of stock is what committed requests leave ({kinds}; "
        f"{told.counts['rolled back']} were rolled back, {told.counts['not run']} not run)",
        "every reply: no total, number or abort that its request is no cause of; last orders, deliveries, "
        "balances, what is left of stock and how many items are short are those of the serial order that the replies "
        "claim",
    ]
    unknown = {kind: count for kind in MIXES[STANDARD] if (count := told.counts[f"unknown {kind}"])}
    if unknown:
        which = ", ".join(f"{count} {kind}" for kind, count in unknown.items())
        checked.append(f"requests without an answer ({which}): each has happened as a whole and once, or not at all")
    return checked
