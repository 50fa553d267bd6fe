"""The accounts of YCSB-T in PostgreSQL: the table, and each function of the workload as one statement. Sends nothing.

A transfer is one UPDATE of two rows. A PL/pgSQL function with two cost the server several per cent more; two in one
WITH cost the same, but deadlocked between few accounts. This one locks its rows in the order of their keys, so opposite
transfers do not, and the table's CHECK aborts the transfer of a debtor that cannot pay.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from asyncpg import CheckViolationError, PostgresError

FILL_PERCENT: Final = 50
"""Of a page when it is loaded: the rest is room for new versions, so that an update touches no index."""
NO_SUCH_ACCOUNT: Final = "STY01"
"""The SQLSTATE of a request to an account that is not there."""

SCHEMA: Final = f"""
CREATE TABLE account (key bigint PRIMARY KEY, balance bigint NOT NULL CHECK (balance >= 0))
    WITH (fillfactor = {FILL_PERCENT});

CREATE FUNCTION no_such_account() RETURNS bigint LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'an account is not there' USING ERRCODE = '{NO_SUCH_ACCOUNT}';
END $$;
"""

TRANSFER: Final = """
WITH moved AS (
    UPDATE account SET balance = balance + CASE key WHEN $1 THEN -$3::bigint ELSE $3 END
    WHERE key IN ($1::bigint, $2::bigint)
    RETURNING key, balance
)
SELECT CASE count(*) WHEN 2 THEN max(balance) FILTER (WHERE key = $1) ELSE no_such_account() END FROM moved
"""
READ: Final = "SELECT CASE count(*) WHEN 1 THEN max(balance) ELSE no_such_account() END FROM account WHERE key = $1"
READ_MANY: Final = """
SELECT array_agg(coalesce(balance, no_such_account()) ORDER BY place)
FROM unnest($1::bigint[]) WITH ORDINALITY AS wanted (key, place) LEFT JOIN account USING (key)
"""


class Statement(NamedTuple):
    """One round trip, with its parameters; its only value is the function's result."""

    sql: str
    parameters: tuple[Any, ...]


def statement(key: Any, function: str, arguments: tuple[Any, ...]) -> Statement:
    """What a request to the bank is in SQL. Raises `ValueError` for a function that it does not have."""
    if function in ("transfer", "transfer_and_wait"):
        return Statement(TRANSFER, (key, *arguments))
    if function == "read":
        return Statement(READ, (key,))
    if function == "read_many":
        return Statement(READ_MANY, ([key, *arguments[0]],))
    raise ValueError(f"the bank has no function {function!r}")


def abort_of(error: PostgresError) -> str | None:
    """The name of the exception that the workload's function raises where the server says this; None if none."""
    if isinstance(error, CheckViolationError):
        return "InsufficientFunds"
    return "NoSuchAccount" if error.sqlstate == NO_SUCH_ACCOUNT else None
