"""A real browser for tests: Chromium without a window, spoken to through its debugging port."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import os
import shutil
import signal
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

import aiohttp

PROGRAMS: Final = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
START_SECONDS_MAX: Final = 300.0


def program() -> str | None:
    """The browser on this machine, `STYX_CHROMIUM` before any other; None if there is none."""
    named = os.environ.get("STYX_CHROMIUM")
    return named or next((found for name in PROGRAMS if (found := shutil.which(name))), None)


class Browser:
    """One tab. `open` goes to a page, `run` runs JavaScript there."""

    def __init__(self, socket: aiohttp.ClientWebSocketResponse) -> None:
        self._socket = socket
        self._numbers = itertools.count(1)
        self._password: dict[str, str] = {}

    async def open(self, url: str) -> None:
        """Returns when the page has loaded."""
        await self._command("Page.navigate", {"url": url})
        while await self.run("document.readyState + location.href") != "complete" + url:  # noqa: ASYNC110 - it tells nobody
            await asyncio.sleep(0.02)

    async def answer_passwords(self, user: str, password: str) -> None:
        """From now on whoever asks for a password is given this one, as a person would."""
        await self._command("Fetch.enable", {"handleAuthRequests": True})
        self._password = {"response": "ProvideCredentials", "username": user, "password": password}

    async def run(self, script: str) -> Any:
        """The value of an expression, or of the promise that it is; raises `AssertionError` if it throws."""
        asked = {"expression": script, "awaitPromise": True, "returnByValue": True}
        answer = await self._command("Runtime.evaluate", asked)
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        return answer["result"].get("value")

    async def _command(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        number = next(self._numbers)
        await self._socket.send_json({"id": number, "method": method, "params": params})
        while True:
            message = await self._socket.receive_json()
            if message.get("method") in ("Fetch.authRequired", "Fetch.requestPaused"):
                await self._go_on(message)
            if message.get("id") == number:
                assert "error" not in message, message
                found: dict[str, Any] = message["result"]
                return found

    async def _go_on(self, message: dict[str, Any]) -> None:
        asked: dict[str, Any] = {"requestId": message["params"]["requestId"]}
        method = "Fetch.continueRequest"
        if message["method"] == "Fetch.authRequired":
            method, asked["authChallengeResponse"] = "Fetch.continueWithAuth", self._password
        await self._socket.send_json({"id": next(self._numbers), "method": method, "params": asked})


@asynccontextmanager
async def browser(resolves: str = "", *options: str) -> AsyncIterator[Browser]:
    """A browser of its own; `resolves` as in Chromium's `--host-resolver-rules`."""
    found = program()
    assert found is not None
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        words = ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run"]
        words += ["--disable-background-networking", "--remote-debugging-port=0", f"--user-data-dir={folder}"]
        words += [f"--host-resolver-rules={resolves}", *options, "about:blank"]
        process = await asyncio.create_subprocess_exec(
            found,
            *words,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.DEVNULL,
            start_new_session=True,
        )
        try:
            port = await _debugging_port(Path(folder) / "DevToolsActivePort")
            async with aiohttp.ClientSession() as session:
                async with session.get(f"http://127.0.0.1:{port}/json") as answer:
                    tab = next(target for target in await answer.json() if target["type"] == "page")
                async with session.ws_connect(tab["webSocketDebuggerUrl"], max_msg_size=0) as socket:
                    yield Browser(socket)
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            await process.wait()


async def _debugging_port(file: Path) -> str:
    async with asyncio.timeout(START_SECONDS_MAX):
        while not (file.exists() and file.read_text()):  # noqa: ASYNC110, ASYNC240 - written by another process
            await asyncio.sleep(0.05)
    return file.read_text().splitlines()[0]  # noqa: ASYNC240 - as above
