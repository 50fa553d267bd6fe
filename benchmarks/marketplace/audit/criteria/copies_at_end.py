"""R1: when all has come to rest, each copy has the price, version and activity of its product, and its last change."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from benchmarks.marketplace.audit.run import Run
from benchmarks.marketplace.audit.violation import Criterion, Violation
from benchmarks.marketplace.services.cart.replica import Replication
from benchmarks.marketplace.services.product.rows import product

REPLICA = "replica"
"""The operator of the copies, which each app makes anew."""


def violations(run: Run) -> Iterator[Violation]:
    """Joins copies and products. While something is under way only copies that change with their products are held to
    it.
    """
    if not run.settled and run.terms.replication is not Replication.TOGETHER:
        return
    products, copies = run.after.values(product), run.after.values(REPLICA)
    for key in sorted(products.keys() | copies.keys()):
        source, copy = products.get(key), copies.get(key)
        if source is None:
            continue  # it was purged; what is left of its copy is inactive
        found, expected = _shown(copy), _shown(source)
        if found != expected:
            yield Violation(Criterion.R1, f"copy of product {key}", found, f"{expected}, as its product")


def _shown(found: Any) -> str:
    if found is None:
        return "nothing"
    active = "active" if found.active else "inactive"
    return f"version {found.version} at {found.price}, {active}, change {found.change}"
