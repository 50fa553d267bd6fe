"""What a coordinator refuses before it takes anything over."""

from __future__ import annotations

import pytest

from styx.cluster.coordinator.process import CoordinatorProcess
from styx.cluster.options import CoordinatorOptions, ProcessOptions, cluster_limits
from styx.errors import ConfigurationError
from styx.kafka.address import parse_kafka_url
from styx.kafka.transaction import TRANSACTION_SECONDS_MAX
from styx.model.limits import Limits, alive_seconds_max
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
    limits = Limits(function_seconds_max=function_seconds_max)
    return CoordinatorProcess(OPTIONS, CoordinatorOptions(app="a", n_slots=4, workers=1, limits=limits))


def test_a_function_that_is_waited_for_is_not_fenced_by_kafka_meanwhile() -> None:
    assert alive_seconds_max(LONGEST_S) == TRANSACTION_SECONDS_MAX
    assert cluster_limits(LONGEST_S).function_seconds_max == LONGEST_S
    coordinator(LONGEST_S)
    text = r"function_seconds_max may be 600 at most on a cluster, not 600\.5: .* 900$"
    with pytest.raises(ValueError, match=text):
        cluster_limits(LONGEST_S + 0.5)
    with pytest.raises(ConfigurationError, match=text):
        coordinator(LONGEST_S + 0.5)
