"""The accounts of YCSB-T in PostgreSQL: the table, and each function of the workload as one statement.

A transfer is one UPDATE of two rows. A PL/pgSQL function with two UPDATEs cost the server several per cent more. Two
UPDATEs in one WITH cost the same, but deadlocked with few accounts. The single UPDATE locks its rows in the order of
their keys, so opposite transfers do not deadlock. The table's CHECK aborts a transfer that the debtor cannot pay. The
other variant is the one that a user might write first: a function that reads the debtor's balance and updates one row
after the other, the debtor's first.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from asyncpg import CheckViolationError, PostgresError

FILL_PERCENT: Final = 50
"""Of a page when it is loaded: the rest is room for new versions, so that an update touches no index."""
NO_SUCH_ACCOUNT: Final = "STY01"
"""The SQLSTATE of a request to an account that is not there."""
INSUFFICIENT_FUNDS: Final = "STY02"
"""The SQLSTATE of the function's refusal."""

SCHEMA: Final = f"""
CREATE TABLE account (key bigint PRIMARY KEY, balance bigint NOT NULL CHECK (balance >= 0))
    WITH (fillfactor = {FILL_PERCENT});

CREATE FUNCTION no_such_account() RETURNS bigint LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'an account is not there' USING ERRCODE = '{NO_SUCH_ACCOUNT}';
END $$;

CREATE FUNCTION transfer(debtor bigint, creditor bigint, amount bigint) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    available bigint;
BEGIN
    SELECT balance INTO available FROM account WHERE key = debtor;
    IF NOT FOUND THEN
        PERFORM no_such_account();
    END IF;
    IF available < amount THEN
        RAISE EXCEPTION 'account % has % and cannot pay %', debtor, available, amount
            USING ERRCODE = '{INSUFFICIENT_FUNDS}';
    END IF;
    UPDATE account SET balance = balance - amount WHERE key = debtor;
    UPDATE account SET balance = balance + amount WHERE key = creditor;
    IF NOT FOUND THEN
        PERFORM no_such_account();
    END IF;
    RETURN available - amount;
END $$;

CREATE FUNCTION transfer_ordered(debtor bigint, creditor bigint, amount bigint) RETURNS bigint LANGUAGE plpgsql AS $$
BEGIN
    PERFORM FROM account WHERE key IN (debtor, creditor) ORDER BY key FOR UPDATE;
    RETURN transfer(debtor, creditor, amount);
END $$;
"""  # noqa: S608 - made of constants

CLEAR: Final = "DROP TABLE IF EXISTS account; DROP FUNCTION IF EXISTS no_such_account, transfer, transfer_ordered"
"""Undoes `SCHEMA`."""

UPDATE: Final = """
WITH moved AS (
    UPDATE account SET balance = balance + CASE key WHEN $1 THEN -$3::bigint ELSE $3 END
    WHERE key IN ($1::bigint, $2::bigint)
    RETURNING key, balance
)
SELECT CASE count(*) WHEN 2 THEN max(balance) FILTER (WHERE key = $1) ELSE no_such_account() END FROM moved
"""
TRANSFERS: Final = {
    "update": UPDATE,
    "function": "SELECT transfer($1, $2, $3)",
    # Right under READ COMMITTED as well: both rows are locked before anything is read of them.
    "ordered": "SELECT transfer_ordered($1, $2, $3)",
}
"""A transfer in SQL, by the name of the way that it is written."""
READ: Final = "SELECT CASE count(*) WHEN 1 THEN max(balance) ELSE no_such_account() END FROM account WHERE key = $1"
READ_MANY: Final = """
SELECT array_agg(coalesce(balance, no_such_account()) ORDER BY place)
FROM unnest($1::bigint[]) WITH ORDINALITY AS wanted (key, place) LEFT JOIN account USING (key)
"""


class Statement(NamedTuple):
    """One round trip, with its parameters; its only value is the function's result."""

    sql: str
    parameters: tuple[Any, ...]


def statement(key: Any, function: str, arguments: tuple[Any, ...], transfer: str = "update") -> Statement:
    """What a request to the bank is in SQL; `transfer` is a name in `TRANSFERS`.

    Raises `ValueError` for a function that the bank does not have.
    """
    if function in ("transfer", "transfer_and_wait"):
        return Statement(TRANSFERS[transfer], (key, *arguments))
    if function == "read":
        return Statement(READ, (key,))
    if function == "read_many":
        return Statement(READ_MANY, ([key, *arguments[0]],))
    raise ValueError(f"the bank has no function {function!r}")


def abort_of(error: PostgresError) -> str | None:
    """The name of the exception that the workload's function raises where the server says this; None if none."""
    if isinstance(error, CheckViolationError) or error.sqlstate == INSUFFICIENT_FUNDS:
        return "InsufficientFunds"
    return "NoSuchAccount" if error.sqlstate == NO_SUCH_ACCOUNT else None
