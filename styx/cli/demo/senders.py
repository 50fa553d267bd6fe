"""The demo's clients, and their journal of every call that they sent and every reply that they got.

Each sends its next call when the last one is answered, and repeats a call that got no reply. They notice a crash as any
client does: a connection breaks. Idempotency keys make repetitions safe. The audit compares the engine's records with
the journal, which holds replies as they arrived.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Coroutine, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Final

from styx.cli.demo.bank import Call
from styx.cli.exit_codes import CommandFailed
from styx.client.base import Client
from styx.messages import Reply

SENDERS: Final = 64
ATTEMPTS_MAX: Final = 50
"""Attempts for one call; then the demo gives up."""
PAUSE_SECONDS: Final = 0.05
"""The time between two attempts."""
_NOT_TAKEN: Final = frozenset({"overloaded", "unavailable"})


@dataclass(slots=True)
class Entry:
    """One call, sent `attempts` times under one idempotency key, `lost` times without a reply.

    `replies` should hold one. `asked_again` has the replies to further sendings after that.
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
        """The number of calls that were sent again because their reply was lost."""
        return sum(1 for entry in self.entries if entry.lost)

    @property
    def in_flight(self) -> int:
        """The number of calls without a reply."""
        return len(self.entries) - len(self.acknowledged)

    def new(self, call: Call) -> Entry:
        """Records a call before it is sent."""
        entry = Entry(call, f"demo-{self._run}-{len(self.entries)}")
        self.entries.append(entry)
        return entry

    def answered(self, entry: Entry, reply: Reply) -> None:
        """Records the reply to a call."""
        entry.replies.append(reply)
        self.acknowledged.append(entry)
        if reply.error is None:
            self.committed += 1
        elif reply.error.code == "aborted":
            self.aborted += 1


class Senders:
    """Sends calls through the client that is connected, and waits while there is none."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._client: Client | None = None
        self._connected = asyncio.Event()

    def connect(self, client: Client) -> None:
        """Sends calls through this client from here on."""
        self._client = client
        self._connected.set()

    def disconnect(self) -> None:
        """Lets calls wait from here on. Calls under way fail when their connection breaks."""
        self._connected.clear()

    async def send_all(self, calls: Iterator[Call]) -> None:
        """Sends all calls and returns when each has its reply; raises `CommandFailed` if one never gets it."""
        await together(self._send_each(calls) for _ in range(SENDERS))

    async def ask_again(self, entries: list[Entry]) -> None:
        """Sends calls again that were answered, under the same idempotency keys; raises as `send_all`."""
        remaining = iter(entries)
        await together(self._ask_each_again(remaining) for _ in range(SENDERS))

    async def _send_each(self, calls: Iterator[Call]) -> None:
        for call in calls:  # shared by all: each takes the next one
            entry = self._journal.new(call)
            self._journal.answered(entry, await self._reply(entry))

    async def _ask_each_again(self, entries: Iterator[Entry]) -> None:
        for entry in entries:
            entry.asked_again.append(await self._reply(entry))

    async def _reply(self, entry: Entry) -> Reply:
        key, function, arguments = entry.call
        for _ in range(ATTEMPTS_MAX):
            await self._connected.wait()
            assert self._client is not None
            entry.attempts += 1
            try:
                reply = await self._client.request(
                    "account", key, function, *arguments, idempotency_key=entry.idempotency_key
                )
            except (ConnectionError, TimeoutError):
                entry.lost += 1
            else:
                if reply.error is None or reply.error.code not in _NOT_TAKEN:
                    return reply
            await asyncio.sleep(PAUSE_SECONDS)
        raise CommandFailed(f"{function} of account {key} got no reply in {ATTEMPTS_MAX} attempts.")


async def together(tasks: Iterable[Coroutine[None, None, None]]) -> None:
    """Runs all at once; when one of them raises `CommandFailed`, ends the others and raises it bare."""
    failed: Exception | None = None
    try:
        async with asyncio.TaskGroup() as group:
            for task in tasks:
                group.create_task(task)
    except* CommandFailed as failures:
        # They all say the same.
        failed = failures.exceptions[0]
    # Not within `except*`: early releases of Python 3.11 wrap in a group whatever is raised there.
    if failed is not None:
        raise failed
