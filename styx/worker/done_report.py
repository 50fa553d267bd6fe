"""A worker's report at barrier 1: how each of its own transactions has ended so far.

Paper sections 5.3 and 6.
"""

from __future__ import annotations

from collections.abc import Iterable

from styx.protocol.messages import Done
from styx.worker.root import RootTransaction


def done_report(
    generation: int, epoch: int, new_max: int, roots: Iterable[RootTransaction], invocations_max: int
) -> Done:
    """Every one of `roots` is done. A transaction is large if it may not make many more calls when it is run again."""
    aborted, collided, deferred, large = list[int](), list[int](), list[int](), list[int]()
    growing_max = invocations_max // 2
    for root in roots:
        if root.overflow or root.external:
            deferred.append(root.tid)
        elif root.collided:
            collided.append(root.tid)
        elif root.failure is not None or root.remembered is not None:
            aborted.append(root.tid)
        if root.count > growing_max:
            large.append(root.tid)
    return Done(generation, epoch, new_max, aborted, collided, deferred, large)
