"""What a coordinator refuses before it takes anything over."""

from __future__ import annotations

import pytest

from styx.cluster.coordinator.process import CoordinatorProcess
from styx.cluster.options import CoordinatorOptions, ProcessOptions, cluster_limits
from styx.errors import ConfigurationError
from styx.log.kafka.address import parse_kafka_url
from styx.log.kafka.transaction import TRANSACTION_SECONDS_MAX
from styx.patience import STUCK_SECONDS_MAX
from styx.store.memory import MemoryStore
from styx.transport import Security

OPTIONS = ProcessOptions(
    name="c",
    security=Security(b"0123456789abcdef", "c"),
    coordinator="",
    log=parse_kafka_url("kafka://127.0.0.1:9092"),
    open_store=MemoryStore,
)
LONGEST_S = 600.0


def coordinator(function_seconds_max: float) -> CoordinatorProcess:
    limits = cluster_limits(function_seconds_max)
    return CoordinatorProcess(OPTIONS, CoordinatorOptions(app="a", n_slots=4, workers=1, limits=limits))


def test_a_function_that_is_waited_for_is_not_fenced_by_kafka_meanwhile() -> None:
    assert LONGEST_S + STUCK_SECONDS_MAX == TRANSACTION_SECONDS_MAX
    coordinator(LONGEST_S)
    with pytest.raises(
        ConfigurationError,
        match=r"function_seconds_max \(--function-seconds-max\) may be 600 at most on a cluster, not 600\.5: .* 900$",
    ):
        coordinator(LONGEST_S + 0.5)
