"""Programs that a newcomer starts: some end by themselves, some serve until they are stopped. This module uses only the
standard library, because the clone installs everything else.
"""

from __future__ import annotations

import http.client as http_client
import json
import os
import signal
import subprocess
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

PATIENCE_SECONDS: Final = 600.0
"""The time limit of each wait."""
POLL_SECONDS: Final = 0.05


class HourFailed(Exception):
    """A failure that would stop a newcomer."""


def environment() -> dict[str, str]:
    """The environment of a clean shell: no variables of styx, and no interpreter of another project."""
    unwanted = ("STYX_", "PYTHON", "VIRTUAL_ENV")
    kept = ("STYX_SERVICES",)
    return {name: value for name, value in os.environ.items() if not name.startswith(unwanted) or name in kept}


def run(words: Sequence[str | Path], cwd: Path, **more: str) -> str:
    """Runs a command, and returns its output, standard error included. Raises `HourFailed` if it fails."""
    done = subprocess.run(
        [str(word) for word in words],
        cwd=cwd,
        env={**environment(), **more},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    if done.returncode:
        raise HourFailed(f"{' '.join(map(str, words))} ended with {done.returncode}:\n{done.stdout}")
    return done.stdout


class Server:
    """A program that serves. Its output goes to a file."""

    def __init__(self, words: Sequence[str | Path], cwd: Path, log: Path, **more: str) -> None:
        self.log = log
        self._words = " ".join(map(str, words))
        with log.open("w") as file:
            self._process = subprocess.Popen(
                [str(word) for word in words],
                cwd=cwd,
                env={**environment(), "PYTHONUNBUFFERED": "1", **more},
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=subprocess.STDOUT,
            )

    def url(self) -> str:
        """Where it serves, as it prints it."""
        self.wait_for("http://127.0.0.1:")
        said = self.log.read_text(errors="replace")
        return "http://127.0.0.1:" + said.partition("http://127.0.0.1:")[2].split()[0].rstrip("/.,")

    def wait_for(self, text: str) -> str:
        """Waits until the output contains `text`, and returns the output. Raises `HourFailed` if the program ends
        before, or the text never comes.
        """
        until_s = time.monotonic() + PATIENCE_SECONDS
        while True:
            ended = self._process.poll() is not None
            said = self.log.read_text(errors="replace")
            if text in said:
                return said
            if ended or time.monotonic() > until_s:
                why = f"ended with {self._process.returncode}" if ended else "never did"
                raise HourFailed(f"{self._words} was to print {text!r} and {why}:\n{said}")
            time.sleep(POLL_SECONDS)

    def stop(self) -> None:
        """Sends Ctrl-C. Raises `HourFailed` if the program ends with another status than 0 or SIGINT."""
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGINT)
            self._process.wait(PATIENCE_SECONDS)
        if self._process.returncode not in (0, -signal.SIGINT):
            said = self.log.read_text(errors="replace")
            raise HourFailed(f"{self._words} ended with {self._process.returncode}:\n{said}")

    def kill(self) -> None:
        """Kills the program, if it still runs after another failure."""
        if self._process.poll() is None:
            self._process.kill()
            self._process.wait()


def http(method: str, url: str, body: Any = None) -> tuple[int, Any]:
    """The status and the JSON of an answer. Raises `HourFailed` if no answer comes, because a serving program must
    always answer.
    """
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(url, data, {"Content-Type": "application/json"}, method=method)
    try:
        with urllib.request.urlopen(request, timeout=PATIENCE_SECONDS) as response:
            return response.status, json.load(response)
    except urllib.error.HTTPError as error:
        return error.code, json.load(error)
    except (OSError, http_client.HTTPException) as error:
        raise HourFailed(f"{method} {url} has no answer: {error}") from None


def answer_behind(status_meanwhile: int, method: str, url: str, body: Any = None) -> Any:
    """The first good answer; until it comes each must have this status. Raises `HourFailed`."""
    until_s = time.monotonic() + PATIENCE_SECONDS
    while True:
        status, answer = http(method, url, body)
        if status == 200:
            return answer
        if status != status_meanwhile or time.monotonic() > until_s:
            raise HourFailed(f"{method} {url} answered {status}: {answer}")
        time.sleep(POLL_SECONDS)


class Load:
    """Another client, which repeats one request while a step changes the deployment."""

    def __init__(self, url: str, body: Any) -> None:
        self._request = ("POST", url, body)
        self._ended = threading.Event()
        self._answers: list[object] = []
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> Load:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._ended.is_set():
            try:
                status, answer = http(*self._request)
            except HourFailed as error:
                status, answer = 0, str(error)
            self._answers.append(answer["result"] if status == 200 else (status, answer))

    def answered(self) -> int:
        """Stops, and returns the number of requests. Raises `HourFailed` if a request has no result."""
        failed = [answer for answer in self._answers if isinstance(answer, tuple)]
        if failed or not self._answers:
            raise HourFailed(f"{len(failed)} of {len(self._answers)} requests meanwhile failed: {failed[:3]}")
        return len(self._answers)
