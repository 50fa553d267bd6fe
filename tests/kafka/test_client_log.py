"""aiokafka's messages: each now and then, not each time."""

from __future__ import annotations

import logging

import pytest

from styx.kafka.client_log import REPEAT_SECONDS, Repeated
from styx.kafka.session import KafkaSession


def test_a_message_passes_again_only_after_a_while() -> None:
    now = [0.0]
    passes = Repeated(lambda: now[0]).filter
    assert passes(_message("cannot connect to %s", "a"))
    assert not passes(_message("cannot connect to %s", "b"))
    assert passes(_message("something else"))
    now[0] = REPEAT_SECONDS - 0.1
    assert not passes(_message("cannot connect to %s", "a"))
    now[0] = REPEAT_SECONDS
    assert passes(_message("cannot connect to %s", "a"))


@pytest.mark.anyio
async def test_sessions_calm_the_client_and_nobody_else() -> None:
    for _ in range(2):
        await KafkaSession("127.0.0.1:1").close()
    assert [type(each) for each in logging.getLogger("aiokafka").filters] == [Repeated]
    assert not logging.getLogger("styx").filters


def _message(text: str, *arguments: object) -> logging.LogRecord:
    return logging.LogRecord("aiokafka", logging.ERROR, "", 0, text, arguments, None)
