"""What the PostgreSQL line decides and says, without a server."""

from __future__ import annotations

import pytest

from benchmarks.reference.postgres import check_connections, retries
from benchmarks.reference.postgres_deployment import Counted
from benchmarks.reference.postgres_tuning import best
from styx.errors import ConfigurationError


def test_what_was_rolled_back_and_not_aborted_was_repeated() -> None:
    text = retries(Counted(committed=950, rolled_back=80, deadlocks=3), aborted=50)
    assert text.startswith("30 transactions were repeated")
    assert "3.00%" in text
    assert "3 of them were deadlocks" in text


def test_without_transactions_nothing_was_repeated() -> None:
    assert retries(Counted(0, 0, 0), aborted=0).startswith("0 transactions")


def test_the_size_with_the_highest_rate_is_taken() -> None:
    assert best({8: 100.0, 16: 300.0, 32: 200.0}) == 16


@pytest.mark.parametrize("connections", [None, 2, 180])
def test_connections(connections: int | None) -> None:
    check_connections(connections, clients=2)


@pytest.mark.parametrize("connections", [0, 1, 181])
def test_connections_that_cannot_be(connections: int) -> None:
    with pytest.raises(ConfigurationError, match="--connections is a number from that of the clients"):
        check_connections(connections, clients=2)
