"""Names and descriptions of metrics that several kinds of processes have, each with counters of its own."""

from __future__ import annotations

from typing import Final, NamedTuple


class Family(NamedTuple):
    """The full name under which it is scraped, and its help text."""

    name: str
    text: str


TRANSACTIONS: Final = Family("styx_transactions_total", "Replies given, by outcome.")
CALLS: Final = Family("styx_calls_total", "Functions run in the execution step, the requests' own included.")
LOCKED: Final = Family("styx_lock_phase_transactions_total", "Transactions run in a lock phase.")
CARRIED: Final = Family("styx_carried_transactions_total", "Transactions that left their epoch unfinished.")
CARRIED_AGAIN: Final = Family("styx_carried_again_total", "Carries of a transaction after its second, by function.")
LEFT: Final = Family("styx_left_slot_transactions_total", "Transactions that left the slot of their local function.")
DEAD_CALLS: Final = Family("styx_dead_calls_total", "Calls for later that were given up, by function.")
EVENTS: Final = Family("styx_events_total", "Events appended to their logs, by event.")
EVENT_BYTES: Final = Family("styx_event_bytes_total", "Bytes of events appended to their logs, by event.")
EVENT_DIFFERENCES: Final = Family(
    "styx_event_differences_total", "Events in their logs that a replay did not emit, or emitted otherwise."
)
EVENTS_WAITING: Final = Family("styx_events_waiting_bytes", "Bytes of events that are not committed to their logs yet.")
DEAD_DROPPED: Final = Family(
    "styx_dead_calls_dropped_total", "Oldest dead calls lost because a partition had too many, by operator."
)
DEAD_KEPT: Final = Family("styx_dead_calls_kept", "Dead calls that are there, by operator.")
GIVEN_FOR_LATER: Final = Family("styx_given_for_later", "Calls that were given for later and have not been made.")
OVERDUE: Final = Family("styx_later_overdue_seconds", "For how long the oldest of these calls has been due.")
PATCH_ROUNDS: Final = Family("styx_patch_rounds_total", "Rounds of lock phases in which calls between slots changed.")
GIVEN_UP: Final = Family(
    "styx_given_up_transactions_total", "Transactions carried because calls between slots went on changing."
)
READS: Final = Family("styx_reads_total", "Reads outside the log that were asked for, by freshness.")
READS_TOO_OLD: Final = Family("styx_reads_too_old_total", "Times that the epoch of a read was not kept any more.")
READS_STALE: Final = Family("styx_reads_stale_total", "Reads refused because the newest state was too old for them.")
VERSION_EPOCHS: Final = Family("styx_version_epochs", "Epochs whose overwritten states are kept for reads.")
VERSION_STATES: Final = Family("styx_version_states", "Overwritten states that are kept for reads.")
VERSION_BYTES: Final = Family("styx_version_bytes", "Bytes of these states, and of their keys about.")
FOLLOWERS: Final = Family("styx_change_followers", "Followers of the changes of epochs here.")
FOLLOWERS_DROPPED: Final = Family(
    "styx_change_followers_dropped_total", "Followers that wanted changes which were not kept any more."
)
CHANGE_LOG_BYTES: Final = Family("styx_change_log_bytes", "Bytes of the changes that are kept for followers.")
EPOCHS: Final = Family("styx_epochs_total", "Epochs ended since the start, replayed ones included.")
POISON: Final = Family("styx_poison_records_total", "Request records skipped as undecodable.")
UNFINISHED: Final = Family("styx_unfinished", "Transactions in an epoch, carried, or waiting for an external call.")
ROWS: Final = Family("styx_rows", "Rows of tables, by table.")
INDEXES: Final = Family("styx_indexes_made", "Indexes in memory, by table, one for each slot.")
ROWS_READ: Final = Family("styx_rows_read_total", "Rows that queries have found, re-runs included, by table.")
RANGE_CONFLICTS: Final = Family(
    "styx_range_conflicts_total", "Transactions in conflict because of rows in a range that they had read, by table."
)
SNAPSHOTS: Final = Family("styx_snapshots_total", "Snapshots completed since the start.")
SNAPSHOTS_FAILED: Final = Family("styx_snapshots_failed_total", "Snapshots given up since the start.")
SNAPSHOT_AGE: Final = Family("styx_snapshot_age_seconds", "Since the last complete snapshot; NaN before the first.")
SNAPSHOT_BYTES: Final = Family("styx_snapshot_written_bytes_total", "Bytes stored for snapshots.")
REFUSED: Final = Family("styx_refused_connections_total", "Connections refused.")
IN_FLIGHT: Final = Family("styx_in_flight", "Requests taken and not answered.")
KAFKA_REACHABLE: Final = Family("styx_kafka_reachable", "1 if Kafka answers.")
