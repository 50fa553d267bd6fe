"""Which request is which statement, and which of the server's errors is the workload's own."""

from __future__ import annotations

import pytest
from asyncpg import CheckViolationError, PostgresError, SerializationError

from benchmarks.reference.postgres_bank import (
    NO_SUCH_ACCOUNT,
    READ,
    READ_MANY,
    TRANSFER,
    Statement,
    abort_of,
    statement,
)
from benchmarks.ycsbt.bank import InsufficientFunds, NoSuchAccount


@pytest.mark.parametrize(
    ("function", "arguments", "expected"),
    [
        ("transfer", (8, 50), Statement(TRANSFER, (7, 8, 50))),
        ("transfer_and_wait", (8, 50), Statement(TRANSFER, (7, 8, 50))),
        ("read", (), Statement(READ, (7,))),
        ("read_many", ([8, 9],), Statement(READ_MANY, ([7, 8, 9],))),
    ],
)
def test_statements(function: str, arguments: tuple[object, ...], expected: Statement) -> None:
    assert statement(7, function, arguments) == expected


def test_other_functions_are_refused() -> None:
    with pytest.raises(ValueError, match="the bank has no function 'rob'"):
        statement(7, "rob", ())


def test_errors_that_are_the_workloads_own() -> None:
    missing = PostgresError("an account is not there")
    missing.sqlstate = NO_SUCH_ACCOUNT
    assert abort_of(CheckViolationError("the balance")) == InsufficientFunds.__name__
    assert abort_of(missing) == NoSuchAccount.__name__
    assert abort_of(SerializationError("try again")) is None
