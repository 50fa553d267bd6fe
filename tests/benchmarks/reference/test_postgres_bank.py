"""Which request is which statement, and which of the server's errors is the workload's own."""

from __future__ import annotations

import pytest
from asyncpg import CheckViolationError, PostgresError, SerializationError

from benchmarks.reference.postgres_bank import (
    INSUFFICIENT_FUNDS,
    NO_SUCH_ACCOUNT,
    READ,
    READ_MANY,
    TRANSFERS,
    UPDATE,
    Statement,
    abort_of,
    statement,
)
from benchmarks.ycsbt.bank import InsufficientFunds, NoSuchAccount


@pytest.mark.parametrize(
    ("function", "arguments", "expected"),
    [
        ("transfer", (8, 50), Statement(UPDATE, (7, 8, 50))),
        ("transfer_and_wait", (8, 50), Statement(UPDATE, (7, 8, 50))),
        ("read", (), Statement(READ, (7,))),
        ("read_many", ([8, 9],), Statement(READ_MANY, ([7, 8, 9],))),
    ],
)
def test_statements(function: str, arguments: tuple[object, ...], expected: Statement) -> None:
    assert statement(7, function, arguments) == expected


def test_a_transfer_may_be_a_function_call_and_nothing_else_is() -> None:
    assert statement(7, "transfer", (8, 50), "function") == Statement(TRANSFERS["function"], (7, 8, 50))
    assert statement(7, "read", (), "function") == Statement(READ, (7,))


def test_other_functions_are_refused() -> None:
    with pytest.raises(ValueError, match="the bank has no function 'rob'"):
        statement(7, "rob", ())


def test_errors_that_are_the_workloads_own() -> None:
    missing = PostgresError("an account is not there")
    missing.sqlstate = NO_SUCH_ACCOUNT
    poor = PostgresError("account 7 cannot pay")
    poor.sqlstate = INSUFFICIENT_FUNDS
    assert abort_of(poor) == InsufficientFunds.__name__
    assert abort_of(CheckViolationError("the balance")) == InsufficientFunds.__name__
    assert abort_of(missing) == NoSuchAccount.__name__
    assert abort_of(SerializationError("try again")) is None
