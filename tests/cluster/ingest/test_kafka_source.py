"""What aiokafka makes of a broken batch is told, and nothing is read on behind it."""

from __future__ import annotations

import zlib
from typing import Any

import pytest
from aiokafka.errors import CorruptRecordException

from styx.cluster.ingest.source import KafkaSource
from styx.errors import EngineFailed
from styx.kafka.address import KafkaAddress

pytestmark = pytest.mark.anyio


class Failing:
    """A consumer whose records cannot be unpacked."""

    def __init__(self, error: Exception) -> None:
        self._error = error

    async def getmany(self, **_: Any) -> None:
        raise self._error


@pytest.mark.parametrize(
    "error",
    [
        UnicodeDecodeError("utf-8", b"\xff", 0, 1, "invalid start byte"),
        zlib.error("incorrect header check"),
        CorruptRecordException("Invalid CRC"),
        EOFError("ended"),
    ],
)
async def test_a_broken_batch_is_told(error: Exception, monkeypatch: pytest.MonkeyPatch) -> None:
    source = KafkaSource(KafkaAddress("bank:9092"), "payments")
    monkeypatch.setattr(source, "_consumer", Failing(error))
    with pytest.raises(EngineFailed, match="payments"):
        await source.read()
