"""The limit on the calls of one transaction, and on the bytes that they carry, in words for the one who exceeds it."""

from __future__ import annotations

from styx.errors import CallLimitExceeded
from styx.native.compiled import TransactionLimits, calls_more


def call_limit_error(limits: TransactionLimits, data: bytes) -> CallLimitExceeded:
    """The error of a call, or of its result, that takes the transaction over `Limits.invocations_max`, the root
    included. `data` are the arguments, or the result; if they count as calls of their own, the text names their size.
    """
    if calls_more(data, limits):
        return CallLimitExceeded(
            f"the transaction's calls have more than {limits.transaction_bytes_max} bytes of arguments and results "
            f"(Limits.transaction_bytes_max; each call counts as at least {limits.call_bytes}): hand over less, or "
            "split it over several requests"
        )
    return CallLimitExceeded(
        f"the transaction calls more than {limits.invocations_max} functions (Limits.invocations_max; those with large "
        "arguments or results count as several: Limits.transaction_bytes_max): an endless recursion? Split it over "
        "several requests"
    )
