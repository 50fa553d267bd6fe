"""One HTTP request to a gateway, for `styx call` and `styx state`, and the outcome of the command for its answer.

It uses the standard library: for one request, the HTTP client and its event loop would take longer to import than the
request takes.
"""

from __future__ import annotations

import http.client
import ssl
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Final, NamedTuple
from urllib.parse import quote, urlsplit

import msgspec

from styx.cli.exit_codes import ABSENT, FAILURE, SUCCESS, USAGE, CommandFailed, usage_error
from styx.client.credential import PASSWORD_IN_URL
from styx.values.codec import shown

MARGIN_SECONDS: Final = 1.0
"""The command waits so much longer than the gateway, so that the gateway tells it of a timeout."""
_THIS_MACHINE: Final = frozenset({"127.0.0.1", "localhost", "::1"})


_TYPED_WRONGLY: Final = frozenset(
    {"unknown_operator", "unknown_function", "not_found", "bad_arguments", "bad_request", "too_large"}
)
"""Codes of requests that did not run, and would be rejected again."""
_MAY_HAVE_RUN: Final = frozenset({"timeout", "unknown"})
_LATER: Final = frozenset({"overloaded", "unavailable"})
_INTERNAL_STATUS: Final = 500
_ADVICE: Final = {
    "bad_arguments": "Arguments are JSON, and other words are text; a number as text is '\"10\"'.",
    "not_found": "The path of --url may be too long: it ends before /v1.",
}


class GatewayRequest(NamedTuple):
    """The request of a transaction. `arguments` is a JSON array, `key` the text form of the key."""

    operator: str
    key: str
    function: str
    arguments: bytes
    timeout_seconds: float
    idempotency_key: str
    credential: str | None = None
    authority: Path | None = None


class GatewayRead(NamedTuple):
    """A read of one entity, or of its rows in the table `rows`. `key` is the text form of its key."""

    operator: str
    key: str
    timeout_seconds: float
    credential: str | None = None
    authority: Path | None = None
    rows: str | None = None


class GatewayWork(NamedTuple):
    """A request of another path. `path` is below the gateway's URL, encoded; it has a query, if there is one. `body` is
    JSON.
    """

    method: str
    path: str
    timeout_seconds: float
    credential: str | None = None
    authority: Path | None = None
    headers: Mapping[str, str] = {}
    body: bytes | None = None


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
    query = "" if read.rows is None else f"?rows={quote(read.rows, safe='')}"
    return _exchange(url, "GET", _path(read.operator, read.key) + query, None, {}, read)


def ask(url: str, work: GatewayWork) -> GatewayAnswer:
    """Sends a request; raises as `post` does."""
    headers = {**work.headers} if work.body is None else {**work.headers, "Content-Type": "application/json"}
    return _exchange(url, work.method, work.path, work.body, headers, work)


def _exchange(
    url: str,
    method: str,
    path: str,
    body: bytes | None,
    headers: dict[str, str],
    sent: GatewayRequest | GatewayRead | GatewayWork,
) -> GatewayAnswer:
    timeout_seconds = sent.timeout_seconds
    connection, prefix = connection_to(url, timeout_seconds + MARGIN_SECONDS, sent.authority)
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
            raise NoReply(f"the connection to {url} broke before the reply came ({why(error)})") from None
    finally:
        connection.close()


def connection_to(url: str, timeout: float, authority: Path | None) -> tuple[http.client.HTTPConnection, str]:
    """A connection that is not open yet, and what stands before each path; raises `CommandFailed` for a wrong URL."""
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
    """The credential for a header; raises `CommandFailed`, whose text does not contain it."""
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
    return CommandFailed(f"no gateway answers at {url}: {why(error)}; nothing was sent.\n{advice}")


def why(error: Exception) -> str:
    """What is wrong, in one line."""
    text = (error.strerror if isinstance(error, OSError) else None) or str(error) or type(error).__name__
    return " ".join(text.split())


class CallOutcome(NamedTuple):
    """JSON for standard output, text for standard error, and the exit code."""

    output: str
    complaint: str
    exit_code: int

    def told(self) -> int:
        """Prints the outcome; returns the exit code. On a terminal the JSON is indented, elsewhere it is one line."""
        if self.complaint:
            print(self.complaint, file=sys.stderr)
        if self.output:
            readable = sys.stdout.isatty() and self.output[0] in "[{"
            print(msgspec.json.format(self.output, indent=2) if readable else self.output)
        return self.exit_code


class _Error(msgspec.Struct):
    code: str
    message: str
    type: str = ""


class _Body(msgspec.Struct):
    result: msgspec.Raw = msgspec.Raw(b"null")
    result_error: str = ""
    error: _Error | None = None


def call_outcome(answer: GatewayAnswer, url: str, idempotency_key: str) -> CallOutcome:
    """The outcome of a request that was answered by the server at `url`."""
    body = _decoded(answer)
    if body is None:
        complaint = _no_reply(answer, url)
        if answer.status >= _INTERNAL_STATUS:
            # A proxy that has lost its server, for example: the server may have committed the request.
            return unknown_outcome(complaint, idempotency_key)
        complaint += "\nCheck --url."
        return CallOutcome("", f"styx: {complaint}", FAILURE)
    return _result(body) if body.error is None else _failed(body.error, idempotency_key)


def read_outcome(answer: GatewayAnswer, url: str) -> CallOutcome:
    """The outcome of the read of an entity."""
    body = _decoded(answer)
    if body is None:
        return CallOutcome("", f"styx: {_no_reply(answer, url)}\nCheck --url.", FAILURE)
    error = body.error
    if error is None:
        return _result(body)
    if error.code == "unknown_entity":
        return CallOutcome("", f"absent: {error.message}", ABSENT)
    if error.code in _MAY_HAVE_RUN:
        return unread_outcome(error.message.partition(";")[0])
    return _failed(error, "")


def edit_outcome(answer: GatewayAnswer, url: str) -> CallOutcome:
    """The outcome of an edit."""
    body = _decoded(answer)
    if body is None or (body.error is not None and body.error.code in _MAY_HAVE_RUN):
        why = _no_reply(answer, url) if body is None or body.error is None else body.error.message.partition(";")[0]
        return CallOutcome("", f"styx: {why}; it may be written: look, before you edit again", FAILURE)
    return _result(body) if body.error is None else _failed(body.error, "")


def unread_outcome(why: str) -> CallOutcome:
    """The outcome of a read without an answer."""
    return CallOutcome("", f"styx: {why}; nothing was changed, ask again", FAILURE)


def _decoded(answer: GatewayAnswer) -> _Body | None:
    try:
        return msgspec.json.decode(answer.body, type=_Body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None


def _result(body: _Body) -> CallOutcome:
    if body.result_error:
        return CallOutcome("", f"styx: {body.result_error}", FAILURE)
    return CallOutcome(bytes(body.result).decode(), "", SUCCESS)


def _no_reply(answer: GatewayAnswer, url: str) -> str:
    return f"status {answer.status} from {url} is no reply of a gateway: {shown(answer.body)}"


def unknown_outcome(why: str, idempotency_key: str) -> CallOutcome:
    """The outcome of a request that may have committed."""
    complaint = (
        f"styx: {why}; the request may have committed.\n"
        f"Ask again with --idempotency-key {idempotency_key}: that gives its reply and runs nothing twice."
    )
    return CallOutcome("", complaint, FAILURE)


def _failed(error: _Error, idempotency_key: str) -> CallOutcome:
    if error.code == "aborted":
        text = f"{error.type}: {error.message}" if error.message else error.type
        return CallOutcome("", f"aborted: {text}", FAILURE)
    if error.code in _MAY_HAVE_RUN:
        return unknown_outcome(error.message.partition(";")[0], idempotency_key)
    if error.code in _TYPED_WRONGLY:
        advice = f"\n{_ADVICE[error.code]}" if error.code in _ADVICE else ""
        return CallOutcome("", f"rejected: {error.message}{advice}", USAGE)
    later = "; try again later" if error.code in _LATER and "again" not in error.message else ""
    return CallOutcome("", f"{error.code}: {error.message}{later}", FAILURE)
