"""The chart's smoke test, against a server that says what gateway and coordinator would."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Final

import pytest

SCRIPT: Final = Path(__file__).parents[2] / "helm" / "styx" / "files" / "smoke_test.py"
WELL: Final[dict[str, Any]] = {
    "/readyz": {"status": "ok"},
    "/openapi.json": {"paths": {"/v1/account/{key}/open": {}}},
    "/status": {
        "app": "bank",
        "app_version": 1,
        "phase": "running",
        "phase_text": "running",
        "waiting": None,
        "generation": 3,
        "n_slots": 16,
        "workers": [{"name": "w-0", "member": True}, {"name": "w-1", "member": True}],
    },
}


@contextmanager
def _serving(pages: dict[str, Any]) -> Iterator[str]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            page = pages.get(self.path)
            body = json.dumps(page or {"reason": "not yet"}).encode()
            self.send_response(503 if page is None else 200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None: ...

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def _run(url: str) -> subprocess.CompletedProcess[str]:
    environment = os.environ | {"GATEWAY_URL": url, "COORDINATOR_URL": url, "SECONDS_MAX": "0"}
    return subprocess.run(
        [sys.executable, "-c", SCRIPT.read_text()], env=environment, capture_output=True, text=True, check=False
    )


def test_all_is_well() -> None:
    with _serving(WELL) as url:
        done = _run(url)
    assert (done.returncode, done.stderr) == (0, "")
    assert "app bank, version 1" in done.stdout
    assert "2 workers share 16 slots" in done.stdout


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"/readyz": None}, "/readyz answers 503"),
        ({"/openapi.json": {"paths": {"/healthz": {}}}}, "no function of an app"),
        ({"/status": {**WELL["/status"], "phase": "away", "waiting": "waiting for Kafka"}}, "waiting for Kafka"),
        ({"/status": {**WELL["/status"], "workers": [{"name": "w-1", "member": False}]}}, "w-1 of 1 workers stand by"),
    ],
)
def test_what_is_wrong_is_said(wrong: dict[str, Any], said: str) -> None:
    with _serving(WELL | wrong) as url:
        done = _run(url)
    assert done.returncode == 1
    assert said in done.stdout
    assert done.stderr == ""


def test_nobody_answers() -> None:
    done = _run("http://127.0.0.1:9")
    assert done.returncode == 1
    assert "refused" in done.stdout
