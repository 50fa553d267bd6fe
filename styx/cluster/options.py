"""Options of each process of a cluster: its identity, its trust, and the addresses it needs. Data only."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from styx.kafka.address import KafkaAddress
from styx.kafka.transaction import TRANSACTION_SECONDS_MAX
from styx.model.limits import FUNCTION_SECONDS_DEFAULT, STUCK_SECONDS_MAX, Limits
from styx.store.base import Store
from styx.transport import Security

EPOCH_TRANSACTIONS_DEFAULT = 500
"""More than an embedded engine's: each epoch of a cluster pays for its barriers over the network. With twice as many, a
transaction costs more again: they do not fit the cache, and more of them conflict.
"""


FUNCTION_SECONDS_MAX: Final = TRANSACTION_SECONDS_MAX - STUCK_SECONDS_MAX
"""A worker that a function holds up appends nothing, and Kafka ends its open transaction."""


def cluster_limits(function_seconds_max: float = FUNCTION_SECONDS_DEFAULT) -> Limits:
    """The limits of a cluster that was told no others. Raises `ValueError`."""
    if function_seconds_max > FUNCTION_SECONDS_MAX:
        raise ValueError(too_long_functions(function_seconds_max))
    return Limits(epoch_transactions_max=EPOCH_TRANSACTIONS_DEFAULT, function_seconds_max=function_seconds_max)


def too_long_functions(seconds: float) -> str:
    """Why functions of a cluster may not run for so long."""
    return (
        f"Limits.function_seconds_max may be {FUNCTION_SECONDS_MAX:g} at most on a cluster, not {seconds:g}: what C "
        f"code holds up is waited for {STUCK_SECONDS_MAX:g} seconds more, and Kafka ends a worker's transaction after "
        f"{TRANSACTION_SECONDS_MAX:g}"
    )


@dataclass(frozen=True, kw_only=True)
class ProcessOptions:
    """For all roles. `coordinator` is its address, `host:port`; `host` and `port` are where it listens (0: any
    port), and `advertise` the host under which others reach it, if that is another one.
    """

    name: str
    security: Security
    coordinator: str
    log: KafkaAddress
    open_store: Callable[[], Store]
    host: str = "127.0.0.1"
    port: int = 0
    advertise: str = ""


@dataclass(frozen=True, kw_only=True)
class CoordinatorOptions:
    """For the coordinator alone. Times in seconds; `workers` None: all that are there share the slots; `keep_log`:
    release no requests and no epoch records, for audits.
    """

    app: str
    n_slots: int
    workers: int | None
    limits: Limits
    reply_partitions: int = 16
    replication: int = 1
    snapshot_interval_s: float = 10.0
    silence_max_s: float = 1.0
    grace_s: float = 10.0
    keep_log: bool = False
