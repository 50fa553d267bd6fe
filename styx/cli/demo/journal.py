"""The demo's own books: every call it sent, and every reply it was given. The audit compares the engine's records with
these.

It takes the engine's answers as they arrive, and asks the engine for nothing later.
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass, field

from styx.cli.demo.workload import Call
from styx.messages import Reply


@dataclass(slots=True)
class Entry:
    """One call: sent `attempts` times under one idempotency key, `lost` of them without a reply.

    `replies` holds one when all is well; `asked_again` those given when it was sent once more after its reply.
    """

    call: Call
    idempotency_key: str
    attempts: int = 0
    lost: int = 0
    replies: list[Reply] = field(default_factory=list)
    asked_again: list[Reply] = field(default_factory=list)


class Journal:
    """Entries in the order they were sent, `acknowledged` in the order they were answered, and running totals."""

    def __init__(self) -> None:
        self.entries: list[Entry] = []
        self.acknowledged: list[Entry] = []
        self.committed = 0
        self.aborted = 0
        self._run = secrets.token_hex(6)

    @property
    def resent(self) -> int:
        """Calls that had to be sent again because their reply was lost."""
        return sum(1 for entry in self.entries if entry.lost)

    @property
    def in_flight(self) -> int:
        """Calls without a reply."""
        return len(self.entries) - len(self.acknowledged)

    def new(self, call: Call) -> Entry:
        """Books a call before it is sent."""
        entry = Entry(call, f"demo-{self._run}-{len(self.entries)}")
        self.entries.append(entry)
        return entry

    def answered(self, entry: Entry, reply: Reply) -> None:
        """Books the reply to a call."""
        entry.replies.append(reply)
        self.acknowledged.append(entry)
        if reply.error is None:
            self.committed += 1
        elif reply.error.code == "aborted":
            self.aborted += 1
