"""The limits that a running transaction meets, as its contexts ask for them at every step. Paper section 3.

A copy of limits that `styx.model.limits` declares, because compiled code reads its own records faster.
"""

from __future__ import annotations

import msgspec

from styx.model.limits import Limits


class TransactionLimits(msgspec.Struct, eq=False, gc=False):
    """As the fields of the same names of `Limits`."""

    value_bytes_max: int
    call_depth_max: int
    invocations_max: int
    operations_max: int
    external_calls_max: int
    transaction_bytes_max: int
    call_bytes: int


def transaction_limits(limits: Limits) -> TransactionLimits:
    """Those of a deployment."""
    return TransactionLimits(
        limits.value_bytes_max,
        limits.call_depth_max,
        limits.invocations_max,
        limits.operations_max,
        limits.external_calls_max,
        limits.transaction_bytes_max,
        limits.call_bytes,
    )


def calls_more(data: bytes, limits: TransactionLimits) -> int:
    """As how many calls more the one counts that has these arguments, or this result (`Limits.call_bytes`)."""
    return len(data) // limits.call_bytes
