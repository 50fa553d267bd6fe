"""The facts of a cluster's process, fetched over HTTP with the standard library. It blocks, and does not retry."""

from __future__ import annotations

import http.client
import os
import ssl
from collections.abc import Mapping
from typing import Final
from urllib.parse import urlsplit

import msgspec

from styx.cli.cluster_setup import SECRET_FILE_VARIABLE, SECRET_VARIABLE, secret_of
from styx.cli.exit_codes import usage_error
from styx.cli.run_directory import local_cluster
from styx.cluster.coordinator.status import Status
from styx.cluster.facts_access import TOKEN_VARIABLE, given_token, token_of
from styx.values.codec import shown

SECONDS_MAX: Final = 5.0


def facts_token(environment: Mapping[str, str] = os.environ) -> str | None:
    """The token for processes' facts: the given one, else that of the secret which is set, or of the `styx up` here.
    None if there is no secret. Raises `ConfigurationError`.
    """
    given = given_token(environment)
    if given is not None:
        return given
    if not environment.get(SECRET_VARIABLE) and not environment.get(SECRET_FILE_VARIABLE):
        local = local_cluster()
        if local is None:
            return None
        environment = {SECRET_FILE_VARIABLE: local.secret_file}
    return token_of(secret_of(environment))


def fetch(url: str, token: str | None = None, verified: bool = True) -> tuple[int, bytes]:
    """Status and body of a GET. `verified`: https shows a certificate that is trusted; without, tell it nothing.

    Raises `OSError` if there is no answer, `CommandFailed` for what is no URL."""
    wrong = usage_error(f"{shown(url)} is no URL of a process; one looks like http://127.0.0.1:8081")
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError:
        raise wrong from None
    if not host or parts.scheme not in ("http", "https"):
        raise wrong
    connection: http.client.HTTPConnection
    if parts.scheme == "https":
        context = ssl.create_default_context(cafile=os.environ.get("STYX_CA") or None)
        if not verified:
            context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        connection = http.client.HTTPSConnection(host, port, timeout=SECONDS_MAX, context=context)
    else:
        connection = http.client.HTTPConnection(host, port, timeout=SECONDS_MAX)
    try:
        headers = {} if token is None else {"Authorization": f"Bearer {token}"}
        connection.request("GET", parts.path or "/", headers=headers)
        response = connection.getresponse()
        return response.status, response.read()
    except http.client.HTTPException as error:
        raise ConnectionError(f"{url} gave no answer: {type(error).__name__}") from None
    finally:
        connection.close()


def fetch_status(url: str, token: str | None = None) -> Status:
    """The cluster's state, from a coordinator's facts. Raises `OSError`, also for an answer of another server."""
    status, body = fetch(url.rstrip("/") + "/status", token)
    if status == 401:
        raise ConnectionError(f"{url} asks for a token: set STYX_SECRET, as its process has it, or {TOKEN_VARIABLE}")
    try:
        return msgspec.json.decode(body, type=Status)
    except msgspec.DecodeError as error:
        raise ConnectionError(
            f"{url} is not a coordinator's facts port: it answers with status {status} ({error})"
        ) from None
