"""A gateway and a real browser: a stranger's page changes nothing, an allowed one works, and so does the docs page."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

import styx
from examples.bank import app
from styx.client.embedded import EmbeddedClient
from styx.gateway.auth import api_keys
from styx.gateway.auth.access import AccessOptions
from styx.gateway.auth.api_keys import new_key, utc_now
from styx.gateway.front import Front
from tests.gateway.browser import Browser, browser, program
from tests.gateway.running import Running, running

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.slow,
    pytest.mark.skipif(program() is None, reason="there is no Chromium: apt-get install chromium, or STYX_CHROMIUM"),
]

PAGE = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 15\r\nConnection: close\r\n\r\n<!doctype html>"
ATTACKS = """
(async () => {
  const url = URL_OF_TRANSFER, body = '["mallory", 50]', said = [];
  const send = async (what, options, to = url) => {
    try {
      const answer = await fetch(to, options);
      said.push([what, answer.type, answer.status, answer.type === "opaque" ? "" : await answer.text()]);
    } catch (error) { said.push([what, "failed", 0, ""]); }
  };
  for (const mode of ["no-cors", "cors"]) {
    await send(mode + " string", {method: "POST", mode, body});
    await send(mode + " blob", {method: "POST", mode, body: new Blob([body])});
    await send(mode + " form", {method: "POST", mode, body: new URLSearchParams({a: body})});
    await send(mode + " no body", {method: "POST", mode});
    await send(mode + " read", {mode, referrerPolicy: "no-referrer"}, url.replace("/transfer", ""));
    await send(mode + " metrics", {mode}, new URL("/metrics", url).href);
  }
  await send("json", {method: "POST", headers: {"content-type": "application/json"}, body});
  navigator.sendBeacon(url, body);
  navigator.sendBeacon(url, new Blob([body], {type: "application/json"}));
  navigator.sendBeacon(url, new Blob([body], {type: "text/plain"}));
  const frame = document.createElement("iframe");
  frame.name = "sink";
  const loaded = new Promise((done) => frame.addEventListener("load", done));
  document.documentElement.append(frame);
  await loaded;
  const form = document.createElement("form");
  Object.assign(form, {action: url, method: "POST", enctype: "text/plain", target: "sink"});
  const field = document.createElement("input");
  Object.assign(field, {name: '["mallory", 50, "', value: '"]'});
  form.append(field);
  document.documentElement.append(form);
  const answered = new Promise((done) => frame.addEventListener("load", done));
  form.submit();
  await answered;
  return said;
})()
"""


@asynccontextmanager
async def page() -> AsyncIterator[str]:
    """An origin of its own, with an empty page."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        # A browser also connects ahead of need, and then asks for nothing.
        with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
            await reader.readuntil(b"\r\n\r\n")
            writer.write(PAGE)
            await writer.drain()
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    async with server:
        yield f"http://localhost:{server.sockets[0].getsockname()[1]}"


@asynccontextmanager
async def bank(*origins: str) -> AsyncIterator[tuple[EmbeddedClient, Running]]:
    async with styx.embedded(app) as client:
        await client.call("account", "alice", "open", 100)
        await client.call("account", "mallory", "open", 0)
        async with running(client.engine, front=Front(allowed_origins=origins)) as server:
            yield client, server


def attack(url: str) -> str:
    return ATTACKS.replace("URL_OF_TRANSFER", f'"{url}/v1/account/alice/transfer"')


async def balances(client: EmbeddedClient) -> list[Any]:
    return [client.entity("account", name) for name in ("alice", "mallory")]


UNTOUCHED = [{"balance": 100}, {"balance": 0}]


async def test_a_page_of_another_origin_changes_and_reads_nothing() -> None:
    async with page() as stranger, bank() as (client, server), browser() as tab:
        await tab.open(stranger + "/")
        said = await tab.run(attack(server.url))
        assert len(said) == 13
        assert {(kind, status) for _, kind, status, _ in said} <= {("opaque", 0), ("failed", 0)}, "it reads no answer"
        assert await balances(client) == UNTOUCHED
        # The same attacks, let in, do move money: the page is one that could.
    async with page() as friend, bank(friend) as (client, server), browser() as tab:
        await tab.open(friend + "/")
        said = {what: (status, text) for what, _, status, text in await tab.run(attack(server.url))}
        assert said["json"][0] == 200
        assert said["cors string"][0] == 415, "an allowed page, too, says what it sends"
        assert [each["balance"] for each in await balances(client)] in ([50, 50], [0, 100])


async def test_a_name_that_was_made_to_lead_here() -> None:
    """The page comes from the attacker's server, whose name then leads to this machine: same origin, for a browser."""
    async with bank() as (client, server), browser("MAP evil.example 127.0.0.1") as tab:
        port = server.url.rpartition(":")[2]
        await tab.open(f"http://evil.example:{port}/healthz")
        said = await tab.run(attack(f"http://evil.example:{port}").replace('type: "text/plain"', 'type: ""'))
        read = {what: (status, text) for what, _, status, text in said}
        assert read["json"][0] == 403
        assert "forbidden_host" in read["json"][1]
        assert "forbidden_host" in read["cors read"][1]
        assert await balances(client) == UNTOUCHED


async def _fill_in(tab: Browser) -> str:
    return str(
        await tab.run(
            """
            (async () => {
              const form = document.querySelector('form[data-operator=account][data-function=transfer]');
              const [key, to, amount] = form.querySelectorAll('input');
              [key.value, to.value, amount.value] = ['alice', 'mallory', '30'];
              form.requestSubmit();
              const output = form.querySelector('output');
              while (!output.textContent) await new Promise((done) => setTimeout(done, 20));
              return output.textContent;
            })()
            """
        )
    )


async def test_the_docs_page_works() -> None:
    async with bank() as (client, server), browser() as tab:
        for url in (server.url, server.url.replace("127.0.0.1", "localhost")):
            await tab.open(url + "/docs")
            assert (await _fill_in(tab)).startswith("200 ")
        assert await balances(client) == [{"balance": 40}, {"balance": 60}]


async def test_the_docs_page_of_a_gateway_that_asks_who_it_is(tmp_path: Path) -> None:
    """A person is asked once, at the page; its forms send what was typed there."""
    text, entry = new_key("ada", utc_now())
    api_keys.change_file(tmp_path / "keys.json", lambda _: [entry])
    front = Front(access=AccessOptions(api_keys=tmp_path / "keys.json"))
    async with styx.embedded(app) as client:
        await client.call("account", "alice", "open", 100)
        await client.call("account", "mallory", "open", 0)
        async with running(client.engine, front=front) as server, browser() as tab:
            await tab.answer_passwords("ada", text)
            await tab.open(server.url + "/docs")
            assert (await _fill_in(tab)).startswith("200 ")
            # What the browser knows now it would also send for a stranger's page.
            async with page() as stranger:
                await tab.open(stranger + "/")
                await tab.run(attack(server.url))
        assert await balances(client) == [{"balance": 70}, {"balance": 30}]
