"""What an audit judges: a run, as it was loaded, as it was found, what its logs tell, what its clients saw, and what
the provider has booked.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property

from benchmarks.marketplace.audit.history import History
from benchmarks.marketplace.audit.state import State
from benchmarks.marketplace.audit.stories import Stories, stories_of
from benchmarks.marketplace.record import Asked, Charge, Mirrored
from benchmarks.marketplace.services.cart.replica import Replication


@dataclass(frozen=True, kw_only=True)
class Terms:
    """The settings of the application that ran, which say what is to be expected of it.

    `rejected` and `seed` are used if there was no provider. `carts`: prices come to open carts.
    """

    replication: Replication = Replication.TOGETHER
    archive: bool = True
    rejected: float = 0.0
    seed: int = 1
    carts: bool = False


@dataclass(frozen=True, kw_only=True)
class Run:
    """A run, whole. `before` is what was loaded, `after` what was found in the end; `history` is of all events between.

    `book` is None if there was no provider. `settled`: nothing was under way when `after` was read, no payment either.
    `calls` are those that the application's graphs allow, (caller, callee) as `cart.checkout`.
    `complete`: `record` has all requests since what was loaded.
    `end` is the deployment's time then, None if it is not known: then what time alone brings about is not demanded.
    """

    before: State
    after: State
    history: History
    record: Iterable[Asked] = ()
    mirror: Sequence[Mirrored] = ()
    book: Sequence[Charge] | None = None
    terms: Terms = Terms()
    calls: Sequence[tuple[str, str]] = ()
    settled: bool = True
    complete: bool = True
    end: datetime | None = None

    @cached_property
    def stories(self) -> Stories:
        """All orders, as the events tell them."""
        return stories_of(self.before, self.history)
