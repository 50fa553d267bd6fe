"""What a process of a cluster tells of itself over HTTP, fetched with the standard library. Blocks; never retries."""

from __future__ import annotations

import http.client
from typing import Final
from urllib.parse import urlsplit

import msgspec

from styx.cli.exit_codes import usage_error
from styx.cluster.coordinator.status import Status
from styx.codec import shown

SECONDS_MAX: Final = 5.0


def fetch(url: str) -> tuple[int, bytes]:
    """Status and body of a GET; raises `OSError` if there is no answer, `CommandFailed` for what is no URL."""
    wrong = usage_error(f"{shown(url)} is no URL of a process; one looks like http://127.0.0.1:8081")
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError:
        raise wrong from None
    if not host or parts.scheme not in ("http", "https"):
        raise wrong
    kind = http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection
    connection = kind(host, port, timeout=SECONDS_MAX)
    try:
        connection.request("GET", parts.path or "/")
        response = connection.getresponse()
        return response.status, response.read()
    except http.client.HTTPException as error:
        raise ConnectionError(f"{url} gave no answer: {type(error).__name__}") from None
    finally:
        connection.close()


def fetch_status(url: str) -> Status:
    """The cluster's state from a coordinator's facts; raises `OSError`, also for an answer that is none."""
    status, body = fetch(url.rstrip("/") + "/status")
    try:
        return msgspec.json.decode(body, type=Status)
    except msgspec.DecodeError as error:
        raise ConnectionError(
            f"{url} is not a coordinator's facts port: it answers with status {status} ({error})"
        ) from None
