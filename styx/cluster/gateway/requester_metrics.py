"""A gateway's metrics of requests on their way through Kafka, for Prometheus."""

from __future__ import annotations

from collections.abc import Iterator

from prometheus_client.core import Metric

from styx.client.kafka.requester import RequestCounters, Requester
from styx.metrics import families
from styx.metrics.exposition import counter, counters, gauge, histogram


def collect(requester: Requester | None) -> Iterator[Metric]:
    """All of them; None: there is no connection to Kafka yet."""
    counts = RequestCounters() if requester is None else requester.counters
    outcomes = {"committed": counts.committed, "aborted": counts.aborted, "rejected": counts.rejected}
    yield counters("styx_requester_replies_total", "Replies received, by outcome.", "outcome", outcomes)
    yield histogram("styx_requester_reply_seconds", "From a request to its reply, through Kafka.", counts.latency)
    for name, text, value in (
        ("sent", "Requests taken.", counts.sent),
        ("rerouted", "Requests that a worker sent back, and that went to another slot.", counts.rerouted),
        ("foreign_replies", "Reply records passed over: another process's, or too late.", counts.foreign),
        ("garbage_replies", "Reply records that could not be decoded.", counts.garbage),
    ):
        yield counter(f"styx_requester_{name}_total", text, value)
    in_flight = 0 if requester is None else requester.in_flight
    yield gauge(*families.IN_FLIGHT, in_flight)
    reachable = requester is not None and requester.unavailable_reason is None
    yield gauge(*families.KAFKA_REACHABLE, reachable)
