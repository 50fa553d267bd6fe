"""The named limits of the engine, and how long processes wait for a function of the app, which follows from them.
Everything in the engine that can grow has a limit.

Limits that can decide a transaction's outcome (sizes, depth, counts) belong to the deployment: all workers must use the
same ones, because a replay must decide the same.
"""

from __future__ import annotations

from typing import Final

import msgspec

KIB: Final = 1024
MIB: Final = 1024 * 1024

TID_MAX: Final = 2**63 - 1
"""Largest transaction id: 64 bits on the wire, signed for the sake of SQLite and most clients."""

KEY_BYTES_MAX: Final = 2 * KIB
EVENT_PLACE_BYTES_MAX: Final = 2 * KIB
"""An event's id, which is its whole place in the serial order. Below 500 calls, each the first of its caller, it has
about 550.
"""
NAME_CHARS_MAX: Final = 128
IDEMPOTENCY_KEY_CHARS_MAX: Final = 256
REQUEST_ID_CHARS_MAX: Final = 256
"""A record with a longer one is no request: its reply, which repeats the id, might not fit into the log."""
TIMEOUT_SECONDS_DEFAULT: Final = 30.0
"""How long a client or gateway waits for a reply unless told otherwise."""
TIMEOUT_SECONDS_MAX: Final = 600.0
CALLS_PER_FUNCTION_MAX: Final = 65_000
"""Calls one invocation can make: a call path has two bytes for each step."""
INDEXES_PER_TABLE_MAX: Final = 16
APP_INDEXES_PER_TABLE_MAX: Final = 4
"""Indexes of one declared table, those of its references included, its primary key not."""
VIEWS_PER_TABLE_MAX: Final = 16
"""Views of one declared table."""
RANKINGS_PER_VIEW_MAX: Final = 4
"""Columns of which one view keeps the least and greatest values."""

PATCH_ROUNDS_MAX: Final = 16
"""Rounds of an epoch's lock phase in which calls or results between slots change. Then the transactions in which they
still do are carried into the next epoch, unless they are most of the lock phase's, or come to rest one for each two
rounds: then it has as many rounds again.
"""
PATCH_ROUNDS_TIMES: Final = 8
"""How many times as many rounds it has at most."""
PATCH_ROUNDS_MORE: Final = 8
"""Such rounds that the others have then. Behind these the lowest transaction that still changes is carried, with all
higher ones.
"""

FUNCTION_SECONDS_DEFAULT: Final = 10.0
SECONDS_MAX: Final = 86_400.0
"""A day: longer times than that are no limits."""


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """Sizes in bytes, counts in pieces."""

    request_bytes_max: int = MIB
    """One request record, as it stands in the log."""
    value_bytes_max: int = MIB
    """One entity's encoded state, one argument list or one result."""
    call_depth_max: int = 512
    """Length of a call path."""
    invocations_max: int = 10_000
    """Functions one transaction may call, its root included."""
    transaction_bytes_max: int = 512 * MIB
    """Arguments and results of the calls of one transaction, all together; see `call_bytes`."""
    operations_max: int = 100_000
    """Context operations (get, put, delete, uses of sequences; rows read or written) one invocation may do."""
    rows_per_query_max: int = 10_000
    """Rows one query may read."""
    epoch_transactions_max: int = 250
    """Transactions one worker brings into one epoch.

    Beyond a few hundred an epoch's objects no longer fit the processor's cache, and more transactions of it conflict.
    """
    epoch_result_bytes_max: int = 8 * MIB
    """Bytes of results, as the functions gave them lately, that one worker brings into one epoch; one larger one is
    always let in. The others wait for a later epoch, while small ones go on.
    """
    slice_invocations: int = 64
    """Invocations run between two looks at the network."""
    idempotency_keys_max: int = 100_000
    """Replies remembered for idempotency keys, per slot; the oldest are forgotten first."""
    idempotency_bytes_max: int = 64 * MIB
    """Bytes of these replies and their keys, per slot; the oldest are forgotten first."""
    in_flight_max: int = 10_000
    """Requests a client or gateway has under way at once."""
    external_calls_max: int = 100
    """External calls one transaction may make, including those of attempts whose arguments changed."""
    parked_max: int = 1_000
    """Transactions per slot that wait for an external call at once."""
    versions_max: int = 16
    """Epochs whose overwritten states one worker keeps for readers outside the log, once there are any."""
    version_bytes_max: int = 64 * MIB
    """Bytes of these states on one worker; what the last epoch has overwritten comes on top."""
    function_seconds_max: float = FUNCTION_SECONDS_DEFAULT
    """How long one function may run without coming back to the engine, by awaiting a call or by ending; then it is
    interrupted.
    """

    @property
    def call_bytes(self) -> int:
        """A call's share of `transaction_bytes_max`, in bytes. A call with larger arguments, or a larger result, counts
        as one more call for each whole share. So both limits are one count, which is exact at the end of the
        transaction: the bytes stay below `transaction_bytes_max` because the count stays within `invocations_max`.
        """
        return max(1, self.transaction_bytes_max // self.invocations_max)

    def __post_init__(self) -> None:
        if not 0.05 <= self.function_seconds_max <= SECONDS_MAX:
            raise ValueError(
                f"Limits.function_seconds_max must be from 0.05 to {SECONDS_MAX:g}, not {self.function_seconds_max}"
            )
        for name in self.__struct_fields__:
            if name != "function_seconds_max" and getattr(self, name) < 1:
                raise ValueError(f"Limits.{name} must be at least 1, not {getattr(self, name)}")


# Patience: how long processes wait for a function of the app -----------------------------------------------

# A function may run for its limit, in a replay for longer, and in C code, where nothing can interrupt it, for longer
# still. Code that waits for an engine which a function holds up takes its time limits from here. So a function within
# its limits is never taken for a dead worker, and a function that is stuck in C code counts as one after a known time.

REPLAY_PATIENCE: Final = 3
"""How many times longer a function may run in the replay of an epoch that may not have been decided before: it may have
ended in time when it ran first, on a machine that was less busy. No reply stands, so either outcome is right.
"""
CLOSED_PATIENCE: Final = 30
"""The same factor in the replay of an epoch that is known to have been decided. There the function did end, or its end
is recorded, and no other outcome is right. If it does not end now, the engine fails.
"""
STUCK_SECONDS_MAX: Final = 300.0
"""A function over its limit is in C code, which nothing can interrupt; its worker counts as alive so much longer."""
PEER_SECONDS: Final = 30.0
"""Workers keep their connections to a silent worker for so much longer: the coordinator decides who is dead."""
END_SECONDS: Final = 2.0
"""For so long after its limit a function can hold up the end of its process."""

STOP_SECONDS: Final = 30.0
"""Time for the rest of a process's end: a gateway drains, a coordinator awaits its last snapshot."""


def alive_seconds_max(limit_seconds: float) -> float:
    """How long a function may hold up a worker that still counts as alive; `limit_seconds` is the function's limit."""
    return limit_seconds + STUCK_SECONDS_MAX


def peer_silence_seconds(limits: Limits) -> float:
    """After how long a silent peer counts as lost: longer than the wait for any function."""
    return alive_seconds_max(limits.function_seconds_max * CLOSED_PATIENCE) + PEER_SECONDS


def end_seconds_max(limits: Limits) -> float:
    """How long one pass of the engine may go on in a process that is told to end: a function may use its limit, but in
    a replay no more than that, since the next start replays it anyway.
    """
    return limits.function_seconds_max + END_SECONDS


def stop_seconds_max(limits: Limits) -> float:
    """How long to wait for the end of a cluster's process before killing it."""
    return end_seconds_max(limits) + STOP_SECONDS
