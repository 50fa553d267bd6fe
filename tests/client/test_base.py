"""What every client gets for its `submit`."""

from collections.abc import Awaitable
from typing import Any

import pytest

from styx import Operator, Reply, ReplyError, RequestRejected
from styx.client.base import Client, check_key, check_timeout, function_name, operator_name, rejected
from styx.client.load import LoadTarget
from styx.errors import BadArguments, BadKey
from tests.gateway.fake_engine import add, paired, shelf

pytestmark = pytest.mark.anyio


class Recorder(Client):
    """Keeps what it was asked for and gives one reply to everything."""

    def __init__(self, reply: Reply) -> None:
        self.reply = reply
        self.seen: list[Any] = []
        self.closed = 0

    def submit(self, *request: Any, timeout: float = 30, idempotency_key: str | None = None) -> Awaitable[Reply]:
        self.seen.append((*request, timeout, idempotency_key))

        async def answer() -> Reply:
            return self.reply

        return answer()

    def load_target(self, *arguments: Any) -> LoadTarget:
        raise NotImplementedError

    async def close(self) -> None:
        self.closed += 1


async def test_call_and_request_go_through_submit() -> None:
    reply = Reply(5, None, 1, 1, 1, "r")
    async with Recorder(reply) as client:
        assert await client.call("o", "k", "f", 1, 2, timeout=3, idempotency_key="i") == 5
        assert await client.request("o", "k", "f") == reply
    assert client.seen == [("o", "k", "f", 1, 2, 3, "i"), ("o", "k", "f", 30, None)]
    assert client.closed == 1


async def test_call_raises_what_request_returns() -> None:
    reply = rejected(BadKey("no"), "r")
    assert reply == Reply(None, ReplyError("BadKey", "no", "bad_arguments"), 0, 0, 0, "r")
    client = Recorder(reply)
    assert await client.request("o", "k", "f") is reply
    with pytest.raises(RequestRejected, match="bad_arguments: no"):
        await client.call("o", "k", "f")
    assert rejected(RequestRejected("too_large", "x")).error == ("RequestRejected", "x", "too_large")


def test_names() -> None:
    assert (operator_name(shelf), operator_name("x"), function_name(add), function_name("y")) == (
        "shelf",
        "x",
        "add",
        "y",
    )
    with pytest.raises(BadArguments, match="None"):
        operator_name(None)  # type: ignore[arg-type]
    with pytest.raises(BadArguments, match="7"):
        function_name(7)  # type: ignore[arg-type]


def test_keys() -> None:
    assert check_key("any", [1, "x"]) == (1, "x")
    assert check_key(paired, (1, "x")) == (1, "x")
    wrong: list[tuple[Operator | str, Any]] = [
        ("any", None),
        ("any", True),
        ("any", (1, 2.0)),
        ("any", ()),
        (Operator("o"), 1),
    ]
    for operator, key in wrong:
        with pytest.raises(BadKey):
            check_key(operator, key)


def test_timeouts() -> None:
    assert check_timeout(600) == 600
    with pytest.raises(ValueError, match="up to 600"):
        check_timeout(600.5)
