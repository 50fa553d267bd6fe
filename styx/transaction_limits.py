"""The limits that a running transaction meets, as its contexts ask for them at every step. Paper section 3.

A copy of what `styx.limits` declares, because compiled code reads its own records quicker. Never decides a limit.
"""

from __future__ import annotations

import msgspec

from styx.limits import Limits


class TransactionLimits(msgspec.Struct, eq=False, gc=False):
    """As the fields of the same names of `Limits`."""

    value_bytes_max: int
    call_depth_max: int
    invocations_max: int
    operations_max: int
    external_calls_max: int


def transaction_limits(limits: Limits) -> TransactionLimits:
    """Those of a deployment."""
    return TransactionLimits(
        limits.value_bytes_max,
        limits.call_depth_max,
        limits.invocations_max,
        limits.operations_max,
        limits.external_calls_max,
    )
