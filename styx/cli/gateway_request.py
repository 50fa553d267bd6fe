"""One HTTP request to a gateway with the standard library, for `styx call`; the answer as bytes.

For one request, the HTTP client and its event loop would take longer to import than the request takes.
"""

from __future__ import annotations

import http.client
import ssl
from pathlib import Path
from typing import Final, NamedTuple
from urllib.parse import quote, urlsplit

from styx.cli.exit_codes import CommandFailed, usage_error
from styx.client.credential import PASSWORD_IN_URL
from styx.values.codec import shown

MARGIN_SECONDS: Final = 1.0
"""How much longer than the gateway the command waits, so that it hears of a timeout from it."""
_THIS_MACHINE: Final = frozenset({"127.0.0.1", "localhost", "::1"})


class GatewayRequest(NamedTuple):
    """A transaction's request: `arguments` is a JSON array, `key` the key's text form, which the server parses."""

    operator: str
    key: str
    function: str
    arguments: bytes
    timeout_seconds: float
    idempotency_key: str
    credential: str | None = None
    authority: Path | None = None


class GatewayRead(NamedTuple):
    """A read of one entity; `key` is its text form, which the server parses."""

    operator: str
    key: str
    timeout_seconds: float
    credential: str | None = None
    authority: Path | None = None


class GatewayAnswer(NamedTuple):
    """An HTTP status and its body."""

    status: int
    body: bytes


class NoReply(Exception):
    """The request was sent and no answer came: it may have committed."""


def post(url: str, request: GatewayRequest) -> GatewayAnswer:
    """Sends the request; raises `CommandFailed` if it could not be sent and `NoReply` if nothing came back."""
    headers = {"Content-Type": "application/json", "Idempotency-Key": request.idempotency_key}
    path = _path(request.operator, request.key, request.function)
    return _exchange(url, "POST", path, request.arguments, headers, request)


def get_entity(url: str, read: GatewayRead) -> GatewayAnswer:
    """Sends the read; raises as `post` does."""
    return _exchange(url, "GET", _path(read.operator, read.key), None, {}, read)


def _exchange(
    url: str, method: str, path: str, body: bytes | None, headers: dict[str, str], sent: GatewayRequest | GatewayRead
) -> GatewayAnswer:
    timeout_seconds = sent.timeout_seconds
    connection, prefix = _connection(url, timeout_seconds + MARGIN_SECONDS, sent.authority)
    headers["Styx-Timeout"] = f"{timeout_seconds:.3f}"
    if sent.credential is not None:
        headers["Authorization"] = "Bearer " + bearer(sent.credential)
    try:
        try:
            connection.connect()
        except OSError as error:
            raise _unreachable(url, error) from None
        try:
            connection.request(method, prefix + path, body, headers)
            response = connection.getresponse()
            return GatewayAnswer(response.status, response.read())
        except TimeoutError:
            raise NoReply(f"no answer within {timeout_seconds:g} s") from None
        except (OSError, http.client.HTTPException) as error:
            raise NoReply(f"the connection to {url} broke before the reply came ({_why(error)})") from None
    finally:
        connection.close()


def _connection(url: str, timeout: float, authority: Path | None) -> tuple[http.client.HTTPConnection, str]:
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError:
        host = port = parts = None
    if parts is not None and "@" in parts.netloc:
        raise usage_error(f"{PASSWORD_IN_URL} the key as STYX_API_KEY")
    if parts is None or not host or parts.scheme not in ("http", "https") or parts.query or parts.fragment:
        raise usage_error(f"{shown(url)} is no gateway's URL; one looks like http://127.0.0.1:8080")
    prefix = parts.path.rstrip("/")
    if parts.scheme == "http":
        return http.client.HTTPConnection(host, port, timeout=timeout), prefix
    return http.client.HTTPSConnection(host, port, timeout=timeout, context=_context(authority)), prefix


def _context(authority: Path | None) -> ssl.SSLContext:
    try:
        return ssl.create_default_context(cafile=authority)
    except (ssl.SSLError, OSError) as error:
        raise usage_error(f"{authority} holds no PEM certificate of an authority: {error}") from None


def _path(*parts: str) -> str:
    try:
        return "/v1/" + "/".join(quote(part, safe="") for part in parts)
    except UnicodeEncodeError:
        raise usage_error("the operator, key or function is not valid Unicode") from None


def bearer(credential: str) -> str:
    """A credential as it may stand in a header; raises `CommandFailed`, without saying what it is."""
    text = credential.strip()
    if not text or not text.isascii() or not text.isprintable() or " " in text:
        raise usage_error("the API key is neither a key nor a token: it has one line of letters, digits and signs")
    return text


def _unreachable(url: str, error: OSError) -> CommandFailed:
    parts = urlsplit(url)
    if parts.hostname in _THIS_MACHINE:
        advice = f"Start one: styx dev MODULE:APP --port {parts.port or 80}"
    else:
        advice = "Check --url, and that this machine can reach it."
    return CommandFailed(f"no gateway answers at {url}: {_why(error)}; nothing was sent.\n{advice}")


def _why(error: Exception) -> str:
    text = (error.strerror if isinstance(error, OSError) else None) or str(error) or type(error).__name__
    return " ".join(text.split())
