"""What each process of a cluster shows at /metrics, of processes that have only just been made and reach nobody."""

from __future__ import annotations

from typing import Final

from styx.audit.metrics import AuditCounters
from styx.cluster.coordinator.process import CoordinatorProcess
from styx.cluster.gateway.process import GatewayProcess
from styx.cluster.ingest.feed import Lane, TopicFeed
from styx.cluster.ingest.process import IngestProcess
from styx.cluster.ingest.source import KafkaSource
from styx.cluster.options import CoordinatorOptions, ProcessOptions, cluster_limits
from styx.cluster.worker.process import WorkerProcess
from styx.gateway.calls import GatewayMetrics
from styx.kafka.address import parse_kafka_url
from styx.model.ingest_position import Position
from styx.query.schema import of_description
from styx.query.service import Limits
from styx.query.source import place_of_cluster
from styx.replica.arrow_rows import ArrowRows
from styx.replica.cluster import Cluster
from styx.replica.epoch_source import EpochSource
from styx.replica.follower import Follower
from styx.replica.process import ReplicaProcess
from styx.replica.service import Places
from styx.store import MemoryStore
from styx.transport import Security
from tests.model.ingest_app import made_app

OPTIONS: Final = ProcessOptions(
    name="p",
    security=Security(b"0123456789abcdef", "c"),
    coordinator="127.0.0.1:1",
    log=parse_kafka_url("kafka://127.0.0.1:1"),
    open_store=MemoryStore,
)


def worker_text() -> str:
    """A worker's; needs a running event loop, as the next two do."""
    worker = WorkerProcess(OPTIONS)
    text = worker.metrics()
    worker.background.abandon()
    return text


def replica_text() -> str:
    """A replica's, of a cluster; needs a running event loop."""
    follower = Follower(lambda: place_of_cluster(MemoryStore()), of_description, 2**20)
    source = EpochSource(follower, Cluster("r", OPTIONS.security, OPTIONS.coordinator), 2**20)
    process = ReplicaProcess(source, ArrowRows(2**20, 9), Places(1, 1), Limits())
    return process.application.page("/metrics").body.decode()


def audit_text() -> str:
    """An audit's."""
    return AuditCounters().text()


def ingest_text() -> str:
    """An ingest process's, which feeds one topic that it has not found yet."""
    process = IngestProcess("i", OPTIONS.security, OPTIONS.coordinator, OPTIONS.log, {})
    ingest = made_app()[1]
    feed = TopicFeed(process.engine, ingest, lambda: KafkaSource(OPTIONS.log, ingest.topic))
    feed.lanes[0] = Lane(0, Position(0))
    process.feeds.by_name[ingest.name] = feed
    return process.metrics()


def coordinator_text() -> str:
    """A coordinator's."""
    wanted = CoordinatorOptions(app="bank", n_slots=4, workers=2, limits=cluster_limits())
    return CoordinatorProcess(OPTIONS, wanted).metrics()


def gateway_text() -> str:
    """A gateway's, on its own port."""
    process = GatewayProcess("g", OPTIONS.security, OPTIONS.coordinator, OPTIONS.log)
    return process.metrics() + GatewayMetrics().text()
