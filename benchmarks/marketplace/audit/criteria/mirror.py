"""BAL: what the sellers' clients believe of their products, by the answers that they got, is what the products are."""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks.marketplace.audit.run import Run
from benchmarks.marketplace.audit.violation import Criterion, Violation
from benchmarks.marketplace.services.product.rows import product


def violations(run: Run) -> Iterator[Violation]:
    """Compares all of which the clients are certain: no request for them is without an answer."""
    for believed in run.mirror:
        key = (believed.seller_id, believed.product_id)
        found = run.after.value(product, key)
        if found is None:
            yield Violation(Criterion.BAL, f"product {key}", "no product", "one, as its client believes")
        elif believed.certain:
            have = (found.version, found.price, found.active)
            expected = (believed.version, believed.price, believed.active)
            if have != expected:
                told = f"{expected}, as its client believes"
                yield Violation(Criterion.BAL, f"product {key}", f"(version, price, active) {have}", told)
