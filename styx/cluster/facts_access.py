"""Who may read a process's facts: clients with a token, or, if the port is on this machine only, everybody.

One token is derived from the cluster's secret, so that commands which have the secret need no other token. A scraper,
which must not have the secret, gets a separate token. Everybody may read the health.
"""

from __future__ import annotations

import hmac
from collections.abc import Iterable, Mapping
from hashlib import sha256
from pathlib import Path
from typing import Final, NamedTuple

from styx.errors import ConfigurationError
from styx.gateway.auth.limits import TOO_MANY_FAILED, FailedAttempts
from styx.gateway.hosts import Hosts, is_loopback
from styx.gateway.origin import HEALTH_PATHS, OriginRules

TOKEN_VARIABLE: Final = "STYX_FACTS_TOKEN"
TOKEN_FILE_VARIABLE: Final = "STYX_FACTS_TOKEN_FILE"
TOKEN_CHARS_MIN: Final = 16
"""Shorter ones could be guessed."""
_PURPOSE: Final = b"styx facts"

Headers = Iterable[tuple[bytes, bytes]]


class Refused(NamedTuple):
    """Status, code and words for a request that is not served; after how many seconds it may come again, if ever."""

    status: int
    code: str
    words: str
    retry_s: int | None = None


class FactsAccess:
    """With `tokens`, one of them is asked for; without, pages of strangers and other hosts than `bound` are refused."""

    def __init__(self, bound: str, tokens: tuple[str, ...] = ()) -> None:
        self._tokens = tuple(token.encode() for token in tokens)
        self._rules = OriginRules(Hosts(bound))
        self._failed_attempts = FailedAttempts()

    def refusal(
        self, method: str, path: str, http_version: str, headers: Headers, client: str = "", now_s: float = 0.0
    ) -> Refused | None:
        """Why a request from the address `client` is not served at `now_s`; None if it is."""
        if path in HEALTH_PATHS and method in ("GET", "HEAD"):
            return None
        if self._tokens:
            return None if self._shows_token(headers) else self._unproved(headers, client, now_s)
        # Only reading is served, so what a body is does not matter.
        refused = self._rules.judge("GET", path, http_version, "http", headers).refusal
        return None if refused is None else Refused(403, refused.code, refused.message)

    def _unproved(self, headers: Headers, client: str, now_s: float) -> Refused:
        if any(name == b"authorization" for name, _ in headers):
            retry_s = self._failed_attempts.failed(client, now_s)
            if retry_s is not None:
                return Refused(429, "rate_limited", f"{TOO_MANY_FAILED}; try again in {retry_s} s", retry_s)
        return Refused(401, "unauthenticated", "send Authorization: Bearer with the token of facts")

    def _shows_token(self, headers: Headers) -> bool:
        sent = [value for name, value in headers if name == b"authorization"]
        scheme, _, credential = (sent[0] if len(sent) == 1 else b"").partition(b" ")
        # All are compared, so that the time tells nothing.
        right = [hmac.compare_digest(credential.strip(), token) for token in self._tokens]
        return scheme.lower() == b"bearer" and any(right)


def token_of(secret: bytes) -> str:
    """The token derived from the cluster's secret; the secret cannot be computed from it."""
    return hmac.digest(secret, _PURPOSE, sha256).hex()


def given_token(environment: Mapping[str, str]) -> str | None:
    """The token in the environment, or in the file that it names; raises `ConfigurationError`."""
    text, file = environment.get(TOKEN_VARIABLE), environment.get(TOKEN_FILE_VARIABLE)
    if file and not text:
        try:
            text = Path(file).read_text("utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise ConfigurationError(f"the token's file {file} cannot be read: {error}") from None
    if not text:
        return None
    token = text.strip()
    if len(token) < TOKEN_CHARS_MIN or not token.isascii() or not token.isprintable() or " " in token:
        raise ConfigurationError(
            f"{TOKEN_VARIABLE} is no token: it has {TOKEN_CHARS_MIN} letters, digits and signs at least, as in "
            "openssl rand -hex 32"
        )
    return token


def tokens_for(host: str, secret: bytes, environment: Mapping[str, str]) -> tuple[str, ...]:
    """What a process that listens on `host` asks for; nothing on this machine alone, unless a token is given."""
    given = given_token(environment)
    if given is not None:
        return given, token_of(secret)
    return () if is_loopback(host) else (token_of(secret),)
