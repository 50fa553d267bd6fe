"""ERR: a request is refused only by what the application refuses on purpose. Anything else is a fault, in the
application or in whoever asks: what fails changes nothing, and so no other criterion sees it.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from typing import Final

from benchmarks.marketplace import errors
from benchmarks.marketplace.audit.run import Run
from benchmarks.marketplace.audit.violation import Criterion, Violation
from benchmarks.marketplace.record import Ended

DECLARED: Final = frozenset(name for name, _ in inspect.getmembers(errors, inspect.isclass))
"""What the services refuse by name."""
FAULTS: Final = frozenset({"WrongStep", "UnknownOrder", "UnknownStock"})
"""Those of them that only another service of this application can cause."""


def violations(run: Run) -> Iterator[Violation]:
    """Looks at the errors of all requests that were run."""
    for asked in run.record:
        if asked.ended is Ended.ABORTED and (asked.error not in DECLARED or asked.error in FAULTS):
            entity = f"{asked.function} of {asked.key}, request {asked.client}-{asked.number}"
            yield Violation(Criterion.ERR, entity, f"aborted by {asked.error}", "a refusal that the service declares")
