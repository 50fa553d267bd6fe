"""The reservations: what is held comes back, each change is told once, and the page shows it without reloading."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path

import httpx
import pytest

from examples.reservations import app as example
from examples.reservations.app import add, app, changed, order, pay, reserve, stock
from styx.process.ports import free_port
from styx.testing import EmbeddedCluster, embedded_cluster
from styx.testing.patience import PATIENCE_SECONDS
from tests.gateway.browser import Browser, browser, program

pytestmark = pytest.mark.anyio
ROOT = Path(__file__).parents[2]
HOLD = timedelta(minutes=15)
SHORTLY = timedelta(seconds=1)


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


class MailService:
    """Sends a mail once for each key, as such services do."""

    def __init__(self) -> None:
        self.mails: list[tuple[str, str]] = []
        self.asked: list[str] = []
        """The keys that it was given."""

    def send(self, to: str, text: str, idempotency_key: str) -> None:
        if idempotency_key not in self.asked:
            self.mails.append((to, text))
        self.asked.append(idempotency_key)


@pytest.fixture
def service(monkeypatch: pytest.MonkeyPatch) -> MailService:
    made = MailService()
    monkeypatch.setattr(example, "send", made.send)
    return made


@pytest.fixture
def mails(service: MailService) -> list[tuple[str, str]]:
    """What was sent."""
    return service.mails


@asynccontextmanager
async def shop(data_dir: Path | None = None) -> AsyncIterator[EmbeddedCluster]:
    """With three chairs."""
    async with embedded_cluster(app, data_dir) as cluster:
        await cluster.call(stock, "chair", add, 3)
        yield cluster


async def hold(cluster: EmbeddedCluster, number: str, quantity: int = 1) -> None:
    assert await cluster.call(order, number, reserve, "chair", quantity, f"{number}@example.org") == "reserved"


def left(cluster: EmbeddedCluster) -> int:
    chairs: int = cluster.entity(stock, "chair")
    return chairs


async def told(cluster: EmbeddedCluster) -> list[tuple[str, str]]:
    """What has become of which order, in the order of the events; all mails are sent then."""
    return [(event.value.order, event.value.status) for event in await cluster.events(changed)]


def mail(number: str, status: str) -> tuple[str, str]:
    return f"{number}@example.org", f"Order {number} is {status}."


# Virtual time ----------------------------------------------------------------------------------------------


async def test_an_order_expires_after_15_minutes_and_gives_its_stock_back(mails: list[tuple[str, str]]) -> None:
    async with shop() as cluster:
        await hold(cluster, "o-1", 2)
        await cluster.advance(HOLD - SHORTLY)
        assert (left(cluster), cluster.entity(order, "o-1").status) == (1, "reserved")
        await cluster.advance(SHORTLY)
        assert (left(cluster), cluster.entity(order, "o-1").status) == (3, "expired")
        late = await cluster.request(order, "o-1", pay)
        assert late.error is not None
        assert late.error.type == "NotReserved"
        await hold(cluster, "o-2", 3)  # what came back can be had


async def test_a_paid_order_does_not_expire(mails: list[tuple[str, str]]) -> None:
    async with shop() as cluster:
        await hold(cluster, "o-1", 2)
        await cluster.advance(HOLD - SHORTLY)
        assert await cluster.call(order, "o-1", pay) == "paid"
        await cluster.advance(100 * HOLD)
        assert (left(cluster), cluster.entity(order, "o-1").status) == (1, "paid")
        assert await told(cluster) == [("o-1", "reserved"), ("o-1", "paid")]


async def test_what_is_refused_changes_and_tells_nothing(mails: list[tuple[str, str]]) -> None:
    async with shop() as cluster:
        await hold(cluster, "o-1", 3)
        refused = [
            await cluster.request(order, "o-2", reserve, "chair", 1, "o-2@example.org"),
            await cluster.request(order, "o-1", reserve, "chair", 1, "o-1@example.org"),
            await cluster.request(order, "o-2", pay),
        ]
        assert [reply.error and reply.error.type for reply in refused] == ["SoldOut", "NotReserved", "NotReserved"]
        await cluster.advance(HOLD)
        assert left(cluster) == 3
        assert await told(cluster) == [("o-1", "reserved"), ("o-1", "expired")]
        assert mails == [mail("o-1", "reserved"), mail("o-1", "expired")]


async def test_events_are_in_order_over_all_orders(mails: list[tuple[str, str]]) -> None:
    async with shop() as cluster:
        await hold(cluster, "o-1")
        await hold(cluster, "o-2")
        await cluster.call(order, "o-2", pay)
        await hold(cluster, "o-3")
        await cluster.advance(HOLD)
        *first, expired, expired_too = await told(cluster)
        assert first == [("o-1", "reserved"), ("o-2", "reserved"), ("o-2", "paid"), ("o-3", "reserved")]
        assert {expired, expired_too} == {("o-1", "expired"), ("o-3", "expired")}
        assert sorted(mails) == sorted(mail(*each) for each in await told(cluster))
        for number in ("o-1", "o-2", "o-3"):  # those of one order, in the order of its events
            of_order = [mail(*each) for each in await told(cluster) if each[0] == number]
            assert [each for each in mails if each[0].startswith(number)] == of_order


async def test_one_mail_each_although_the_engine_crashes(mails: list[tuple[str, str]], tmp_path: Path) -> None:
    async with shop(tmp_path / "data") as cluster:
        await hold(cluster, "o-1")
        await hold(cluster, "o-2")
        assert len(await told(cluster)) == 2
        await cluster.crash_and_recover()
        await cluster.call(order, "o-2", pay)
        assert len(await told(cluster)) == 3
        await cluster.crash_and_recover()
        await cluster.advance(HOLD)  # the expiry was given before both crashes
        assert await told(cluster) == [("o-1", "reserved"), ("o-2", "reserved"), ("o-2", "paid"), ("o-1", "expired")]
        await cluster.crash_and_recover()
        await cluster.advance(HOLD)
        assert sorted(mails) == sorted(mail(*each) for each in await told(cluster))
        assert left(cluster) == 2


async def test_a_mail_that_could_not_be_sent_before_a_crash_is_sent_once_behind_it(
    mails: list[tuple[str, str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def down(to: str, text: str, idempotency_key: str) -> None:
        raise ConnectionError("the mail server is down")

    async with shop(tmp_path / "data") as cluster:
        with monkeypatch.context() as patch:
            patch.setattr(example, "send", down)
            await hold(cluster, "o-1")
            assert await told(cluster) == [("o-1", "reserved")]
            await cluster.crash_and_recover()
        assert mails == []
        await cluster.advance(timedelta(minutes=1))
        assert mails == [mail("o-1", "reserved")]


async def test_a_mail_that_a_crash_repeats_is_one_mail_for_the_service(
    service: MailService, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent, crashed = threading.Event(), threading.Event()

    def send(to: str, text: str, idempotency_key: str) -> None:
        service.send(to, text, idempotency_key)
        sent.set()
        crashed.wait(PATIENCE_SECONDS)

    monkeypatch.setattr(example, "send", send)
    async with shop(tmp_path / "data") as cluster:
        await hold(cluster, "o-1")
        await asyncio.to_thread(sent.wait, PATIENCE_SECONDS)
        await cluster.crash_and_recover()
        crashed.set()
        assert await told(cluster) == [("o-1", "reserved")]
        assert len(service.asked) == 2
        assert service.mails == [mail("o-1", "reserved")]


# The page --------------------------------------------------------------------------------------------------

RESERVE = """
(() => {
  document.querySelector("[name=order]").value = "NUMBER";
  document.querySelector("[name=email]").value = "NUMBER@example.org";
  document.querySelector("form button").click();
})()
"""
SHOWN = """
Object.fromEntries(
  [...document.querySelectorAll("tbody tr")].map((row) => [row.cells[0].textContent, row.cells[1].textContent])
)
"""
PAY = """
[...document.querySelectorAll("tbody tr")].find((row) => row.cells[0].textContent === "NUMBER")
  .querySelector("button")?.click()
"""
TRIES = 50


@asynccontextmanager
async def served(folder: Path, seconds: int) -> AsyncIterator[str]:
    """The example as a process of its own, whose orders are held for so many seconds; where it is served."""
    port = free_port()
    own = {"HOLD_SECONDS": str(seconds), "PORT": str(port), "DATA_DIR": str(folder / "data")}
    log = (folder / "log").open("wb")
    process = await asyncio.create_subprocess_exec(
        *[sys.executable, "-m", "examples.reservations"], cwd=ROOT, env=os.environ | own, stdout=log, stderr=log
    )
    url = f"http://127.0.0.1:{port}/"
    try:
        async with httpx.AsyncClient() as http, asyncio.timeout(PATIENCE_SECONDS):
            while True:
                assert process.returncode is None, (folder / "log").read_text()
                try:
                    assert (await http.get(url)).status_code == 200
                    break
                except httpx.TransportError:
                    await asyncio.sleep(0.05)
        yield url
        process.send_signal(signal.SIGTERM)
        async with asyncio.timeout(PATIENCE_SECONDS):
            await process.wait()
    finally:
        log.close()
        if process.returncode is None:
            process.kill()
            await process.wait()


async def seen(tab: Browser, holds: Callable[[dict[str, str]], bool]) -> dict[str, str]:
    """The status of each order as the page shows it, as soon as that is as it should be."""
    async with asyncio.timeout(PATIENCE_SECONDS):
        while not holds(shown := await tab.run(SHOWN)):  # noqa: ASYNC110 - a page tells nobody
            await asyncio.sleep(0.02)
    found: dict[str, str] = shown
    return found


async def two_orders(tab: Browser, unpaid: str, paid: str) -> tuple[str, str]:
    """What becomes of two orders that are reserved, of which the second one is paid."""
    await tab.run(RESERVE.replace("NUMBER", unpaid))
    await seen(tab, lambda shown: unpaid in shown)
    await tab.run(RESERVE.replace("NUMBER", paid))
    await seen(tab, lambda shown: paid in shown)
    await tab.run(PAY.replace("NUMBER", paid))
    found = await seen(tab, lambda shown: "reserved" not in (shown[unpaid], shown[paid]))
    return found[unpaid], found[paid]


@pytest.mark.slow
@pytest.mark.skipif(program() is None, reason="there is no Chromium: apt-get install chromium, or STYX_CHROMIUM")
async def test_the_page_shows_each_change_without_reloading(tmp_path: Path) -> None:
    async with browser() as tab, served(tmp_path, seconds=3) as url:  # ends while the page is open
        await tab.open(url)
        await tab.run("window.loaded = 'once'")
        for number in range(TRIES):
            found = await two_orders(tab, f"unpaid-{number}", f"paid-{number}")
            assert found in (("expired", "paid"), ("expired", "expired"))
            if found[1] == "paid":  # a busy machine may not pay within 3 seconds: then it tries again
                break
        else:
            pytest.fail(f"none of {TRIES} orders was paid within 3 seconds")
        assert await tab.run("window.loaded") == "once"
    assert "Application shutdown complete" in (tmp_path / "log").read_text()
