"""Which of an app's topics there are: one that a broker cannot tell of just now is not taken for one that is gone."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from styx.errors import ConfigurationError
from styx.kafka import topics
from styx.kafka.errors import NO_ERROR, UNKNOWN_TOPIC_OR_PARTITION
from styx.kafka.topics import existing_topics, topics_of

pytestmark = pytest.mark.anyio
LEADER_NOT_AVAILABLE = 5
TOPIC_AUTHORIZATION_FAILED = 29


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


class Session:
    """With a broker that says this of the first topic, and knows no other."""

    code = NO_ERROR

    def __init__(self, address: Any) -> None:
        self.address = address

    async def open(self) -> None:
        pass

    async def close(self) -> None:
        pass

    async def send_anywhere(self, request: Any) -> Any:
        first, *others = topics_of("bank")
        named: list[tuple[Any, ...]] = [
            (self.code, first, False, []),
            *((UNKNOWN_TOPIC_OR_PARTITION, name, False, []) for name in others),
        ]
        return SimpleNamespace(topics=named)


async def asked(monkeypatch: pytest.MonkeyPatch, code: int) -> list[str]:
    monkeypatch.setattr(Session, "code", code)
    monkeypatch.setattr(topics, "KafkaSession", Session)
    return await existing_topics("127.0.0.1:1", topics_of("bank"))


async def test_there_or_not(monkeypatch: pytest.MonkeyPatch) -> None:
    assert await asked(monkeypatch, NO_ERROR) == [topics_of("bank")[0]]
    assert await asked(monkeypatch, UNKNOWN_TOPIC_OR_PARTITION) == []


async def test_what_passes_is_no_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ConnectionError, match=r"does not show the topic .* now"):
        await asked(monkeypatch, LEADER_NOT_AVAILABLE)


async def test_what_does_not_pass_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ConfigurationError, match="does not show the topic"):
        await asked(monkeypatch, TOPIC_AUTHORIZATION_FAILED)
