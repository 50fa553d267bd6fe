"""The transaction of a session, as far as a client can tell it: whether one is open, has failed, and its savepoints. It
holds nothing: each query sees all tables at a moment of its own.
"""

from __future__ import annotations

from typing import Final

from styx.postgres.sql_errors import FAILED_TRANSACTION, LIMIT_EXCEEDED, NO_SAVEPOINT, NO_TRANSACTION, SqlError

IDLE: Final = "I"
OPEN: Final = "T"
FAILED: Final = "E"
SAVEPOINTS_MAX: Final = 1_000


class Transaction:
    """`status` as `ReadyForQuery` tells it: I for none, T for an open one, E for one that has failed."""

    def __init__(self) -> None:
        self.status = IDLE
        self._savepoints: list[str] = []

    def begin(self) -> str:
        """The answer is a warning, empty for none."""
        if self.status == OPEN:
            return "there is already a transaction in progress"
        self.status = OPEN
        return ""

    def end(self, *, commits: bool, chain: bool) -> tuple[str, str]:
        """The answer's tag, and a warning."""
        was, self.status = self.status, OPEN if chain else IDLE
        self._savepoints.clear()
        warning = "there is no transaction in progress" if was == IDLE else ""
        if was == IDLE and chain:
            self.status = IDLE
            raise SqlError(NO_TRANSACTION, "AND CHAIN can only be used in transaction blocks")
        return "COMMIT" if commits and was != FAILED else "ROLLBACK", warning

    def failed(self) -> None:
        """A statement has failed."""
        if self.status == OPEN:
            self.status = FAILED

    def savepoint(self, verb: str, name: str) -> str:
        """SAVEPOINT, RELEASE and ROLLBACK TO; the answer is the tag."""
        if self.status == IDLE:
            raise SqlError(NO_TRANSACTION, f"{verb.upper()} can only be used in transaction blocks")
        if verb == "savepoint":
            if len(self._savepoints) >= SAVEPOINTS_MAX:
                raise SqlError(LIMIT_EXCEEDED, f"a transaction has at most {SAVEPOINTS_MAX} savepoints")
            self._savepoints.append(name)
            return "SAVEPOINT"
        if name not in self._savepoints:
            raise SqlError(NO_SAVEPOINT, f'savepoint "{name[:63]}" does not exist')
        at = len(self._savepoints) - 1 - self._savepoints[::-1].index(name)
        del self._savepoints[at + (verb == "rollback") :]
        if verb == "rollback":
            self.status = OPEN
        return verb.upper()

    def check(self, *, ends: bool) -> None:
        """Raises `SqlError` if the transaction has failed, unless the command ends it."""
        if self.status == FAILED and not ends:
            raise SqlError(
                FAILED_TRANSACTION, "current transaction is aborted, commands ignored until end of transaction block"
            )
