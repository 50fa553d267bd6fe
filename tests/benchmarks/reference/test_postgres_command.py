"""What the PostgreSQL line decides and says, without a server."""

from __future__ import annotations

import pytest

from benchmarks.reference.__main__ import main
from benchmarks.reference.postgres import access_used, check_connections, retries
from benchmarks.reference.postgres_tuning import best
from styx.errors import ConfigurationError


def test_what_was_repeated_is_a_share_of_what_ended() -> None:
    text = retries(30, ended=1000, deadlocks=3)
    assert text.startswith("30 transactions were repeated")
    assert "3.00% of the 1000 that ended" in text
    assert "3 of them were deadlocks" in text


def test_without_transactions_nothing_was_repeated() -> None:
    assert retries(0, ended=0, deadlocks=0).startswith("0 transactions")


def test_the_size_with_the_highest_rate_is_taken() -> None:
    assert best({8: 100.0, 16: 300.0, 32: 200.0}) == 16


def test_which_pool_and_sizes_were_used_is_said() -> None:
    assert access_used("asyncpg", "update", 16, {8: 100.0, 16: 300.0}) == (
        "pool asyncpg with 16 connections (tried, always busy: 8: 100/s, 16: 300/s), statement update"
    )
    assert access_used("dedicated", "function", 4, {}) == (
        "pool dedicated with 4 connections (as asked for), statement function"
    )


@pytest.mark.parametrize("option", ["--pool", "--statement"])
def test_other_pools_and_statements_are_refused(option: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["postgres", option, "none"])
    assert f"argument {option}: invalid choice" in capsys.readouterr().err


@pytest.mark.parametrize("connections", [None, 2, 180])
def test_connections(connections: int | None) -> None:
    check_connections(connections, clients=2)


@pytest.mark.parametrize("connections", [0, 1, 181])
def test_connections_that_cannot_be(connections: int) -> None:
    with pytest.raises(ConfigurationError, match="--connections is a number from that of the clients"):
        check_connections(connections, clients=2)
