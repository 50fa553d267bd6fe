"""Archives: what has ended leaves as an event, in the transaction that ends it, so it survives all workers."""

from __future__ import annotations

from typing import Any

from benchmarks.marketplace import settings
from styx import Context, Event


def archive(ctx: Context[Any, Any], event: Event[Any], value: Any) -> None:
    """Emits it, unless archives are turned off."""
    if settings.ARCHIVE:
        ctx.emit(event, value)
