"""The audit of a run. It reads accounts by ordinary requests, and compares their balances with the ledger.

It reads all accounts if they are few enough, else those that the run has touched and a sample of the others. Transfers
happen only between touched accounts, so the sum of the balances read is certain in either case. Without a witness only
the sum of all accounts is checked.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from typing import Any, Final

from benchmarks.driver.reading import Unread, read_each
from benchmarks.driver.workload import Audit
from benchmarks.ycsbt.bank import read
from benchmarks.ycsbt.ledger import Balance, Ledger
from benchmarks.ycsbt.settings import Settings
from styx.client.base import Client
from styx.model.operator import Operator

SAMPLE_SEED: Final = 20250622


async def audit(
    client: Client, operator: Operator, settings: Settings, witnesses: Sequence[Mapping[str, Any]]
) -> Audit:
    """Reads and compares. The clients must have ended: what they still send is in no witness."""
    ledger = Ledger(settings, witnesses)
    # A request's slot runs what it got before it. After these reads, whatever reached the log has happened.
    await read_balances(client, operator, ledger.uncertain_debtors)
    keys = accounts_to_read(settings, ledger.touched) if ledger.witnessed else range(settings.keys)
    balances = await read_balances(client, operator, keys)
    return Audit(_checked(settings, ledger, len(keys)), ledger.violations(balances))


def accounts_to_read(settings: Settings, touched: Sequence[int]) -> Sequence[int]:
    """All accounts, or the touched ones and as many more, drawn at random, as make `settings.audit_keys`."""
    if settings.keys <= max(settings.audit_keys, len(touched)):
        return range(settings.keys)
    chosen = set(touched)
    missing = settings.audit_keys - len(chosen)
    if missing > 0:
        drawn = random.Random(SAMPLE_SEED).sample(range(settings.keys), missing + len(chosen))
        chosen.update([key for key in drawn if key not in chosen][:missing])
    return sorted(chosen)


async def read_balances(client: Client, operator: Operator, keys: Sequence[int]) -> dict[int, Balance]:
    """The balances of these accounts."""
    return {key: _balance(answer) for key, answer in (await read_each(client, operator, keys, read)).items()}


def _balance(answer: Any) -> Balance:
    if isinstance(answer, Unread):
        return answer.why
    return answer if type(answer) is int else f"its balance is {answer!r}"


def _checked(settings: Settings, ledger: Ledger, n_read: int) -> list[str]:
    counts, touched = ledger.counts, len(ledger.touched)
    if n_read == settings.keys:
        which = f"all {n_read} accounts"
    else:
        which = f"{n_read} of {settings.keys} accounts, the {touched} that were touched and a sample"
    total = f"their sum: {n_read * settings.balance}, as at the start"
    if not ledger.witnessed:
        return [f"{which}: each is there and none is below 0", total]
    checked = [
        f"{which}: each has what {counts['committed']} committed transfers leave it "
        f"({counts['not committed']} requests did not commit)",
        total,
        "every reply: no transfer of more than there is, no balance below 0, no other abort than for lack of funds",
    ]
    if counts["unknown"]:
        checked.append(
            f"{counts['unknown']} transfers without an answer, of {len(ledger.uncertain_debtors)} debtors: "
            "these and their creditors may have what they leave or not, the sum may not differ"
        )
    if counts["reads of all"]:
        checked.append(f"{counts['reads of all']} reads of all accounts that take part: each saw the same sum")
    return checked
