"""What a requester counts of its replies."""

import pytest

from styx.client.kafka.requester import FEW, RequestCounters


@pytest.mark.parametrize("number", [0, 1, FEW, 10 * FEW])
def test_commits(number: int) -> None:
    counters = RequestCounters()
    counters.committed_after([0.0001] * number + [3.0])
    assert counters.committed == counters.latency.count == number + 1
    assert counters.latency.counts[0] == number
    assert counters.latency.total == pytest.approx(3.0 + 0.0001 * number)


def test_errors() -> None:
    counters = RequestCounters()
    for code in "aborted", "overloaded", "bad_arguments":
        counters.failed_after(code, 0.1)
    assert (counters.committed, counters.aborted, counters.rejected, counters.latency.count) == (0, 1, 2, 3)
