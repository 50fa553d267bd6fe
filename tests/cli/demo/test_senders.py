"""The demo's clients: what they do when a connection breaks."""

import asyncio
from collections.abc import Awaitable
from typing import Any, NoReturn

import pytest

from styx.cli.demo import senders as senders_module
from styx.cli.demo.bank import Call
from styx.cli.demo.senders import ATTEMPTS_MAX, Journal, Senders
from styx.cli.exit_codes import CommandFailed
from styx.client.base import Client
from styx.messages import Reply, ReplyError

pytestmark = pytest.mark.anyio
CALLS = [Call(f"a{n}", "open", (n,)) for n in range(200)]


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(senders_module, "PAUSE_SECONDS", 0)


class FakeClient(Client):
    """Answers by key, in turn: an error to raise, a rejection's code, or the number of the request."""

    def __init__(self, answers: dict[str, list[Exception | str]] | None = None) -> None:
        self.answers = answers or {}
        self.keys: list[str | None] = []

    def submit(self, *args: Any, idempotency_key: str | None = None, **options: Any) -> Awaitable[Reply]:
        return self._answer(args[1], idempotency_key)

    async def _answer(self, key: str, idempotency_key: str | None) -> Reply:
        self.keys.append(idempotency_key)
        answer = self.answers[key].pop(0) if self.answers.get(key) else None
        if isinstance(answer, Exception):
            raise answer
        error = None if answer is None else ReplyError("X", "no", answer)
        return Reply(len(self.keys), error, 1, 1, 1, f"r{len(self.keys)}")

    def load_target(self, *_: Any) -> NoReturn:
        raise AssertionError("the demo loads nothing")

    async def close(self) -> None: ...


async def test_each_call_is_sent_once_and_booked() -> None:
    journal, client = Journal(), FakeClient({"a7": ["aborted"]})
    senders = Senders(journal)
    senders.connect(client)
    await senders.send_all(iter(CALLS))
    assert [entry.call for entry in journal.entries] == CALLS
    assert all(len(entry.replies) == entry.attempts == 1 for entry in journal.entries)
    assert len(set(client.keys)) == len(client.keys) == 200
    assert (journal.committed, journal.aborted, journal.resent, journal.in_flight) == (199, 1, 0, 0)


async def test_what_got_no_reply_is_sent_again_with_its_key() -> None:
    journal = Journal()
    client = FakeClient({"a3": [ConnectionError(), TimeoutError(), "unavailable"], "a5": ["overloaded"]})
    senders = Senders(journal)
    senders.connect(client)
    await senders.send_all(iter(CALLS))
    third = journal.entries[3]
    assert (third.attempts, third.lost, len(third.replies)) == (4, 2, 1)
    assert client.keys.count(third.idempotency_key) == 4
    assert journal.resent == 1  # a refusal is no lost reply


async def test_waits_while_disconnected_and_goes_on_elsewhere() -> None:
    journal, second = Journal(), FakeClient()
    senders = Senders(journal)

    class Dying(FakeClient):
        deaths = 0

        async def _answer(self, key: str, idempotency_key: str | None) -> Reply:
            if len(self.keys) < 100:
                return await super()._answer(key, idempotency_key)
            self.deaths += 1
            senders.disconnect()
            if self.deaths == 1:
                asyncio.get_running_loop().call_soon(restart)
            raise ConnectionError

    def restart() -> None:
        # Everybody who was going to send has tried by now.
        assert dying.deaths == 1
        senders.connect(second)

    dying = Dying()
    senders.connect(dying)
    await senders.send_all(iter(CALLS))
    assert dying.deaths == 1
    assert len(second.keys) == 100
    assert journal.in_flight == 0


async def test_asking_again_books_apart() -> None:
    journal = Journal()
    senders = Senders(journal)
    senders.connect(FakeClient())
    await senders.send_all(iter(CALLS))
    await senders.ask_again(journal.entries[10:20])
    assert sum(len(entry.asked_again) for entry in journal.entries) == 10
    assert all(len(entry.replies) == 1 for entry in journal.entries)


async def test_gives_up_in_the_end() -> None:
    senders = Senders(Journal())
    senders.connect(FakeClient({"a3": [ConnectionError()] * ATTEMPTS_MAX}))
    with pytest.raises(CommandFailed, match="open of account a3 got no reply in 50 attempts"):
        await senders.send_all(iter(CALLS))
