"""A broker for unit tests of the appender: answers each produce request as it is told to, at once or never."""

from __future__ import annotations

import asyncio
from collections import deque
from types import SimpleNamespace
from typing import Any

SILENT = -1000
"""In place of an error code: no answer at all."""
BROKEN = -1001
"""The connection breaks before the answer."""


class FakeSession:
    """Leads every partition. `codes`: for one request after the other, then 0 for ever."""

    def __init__(self, *codes: int) -> None:
        self.codes = deque(codes)
        self.requests: list[list[tuple[str, int, bytes]]] = []
        self.closed = False
        self._next_offset: dict[tuple[str, int], int] = {}
        self._seen: dict[bytes, int] = {}

    def __str__(self) -> str:
        return "Kafka at nowhere:1"

    async def open(self, topics: object = ()) -> None:
        pass

    async def close(self) -> None:
        self.closed = True

    async def refresh(self) -> bool:
        return True

    def track(self, topic: str) -> None:
        pass

    def leader(self, topic: str, partition: int) -> int:
        return 1

    async def send_anywhere(self, request: Any) -> Any:
        return SimpleNamespace(error_code=0, producer_id=7, producer_epoch=0)

    async def send(self, node: int, request: Any, *, apart: bool = False) -> Any:
        sent = [(topic, partition, bytes(data)) for topic, entries in request._topics for partition, data in entries]
        self.requests.append(sent)
        code = self.codes.popleft() if self.codes else 0
        if code == SILENT:
            await asyncio.Event().wait()
        if code == BROKEN:
            raise ConnectionError("the connection broke")
        topics = []
        for topic, partition, data in sent:
            offset = -1 if code else self._append(topic, partition, data)
            topics.append((topic, [(partition, code, offset, -1, 0)]))
        return SimpleNamespace(topics=topics)

    def _append(self, topic: str, partition: int, data: bytes) -> int:
        key = topic, partition
        first = self._seen.setdefault(data, self._next_offset.get(key, 0))
        count = int.from_bytes(data[57:61], "big")
        self._next_offset[key] = max(self._next_offset.get(key, 0), first + count)
        return first
