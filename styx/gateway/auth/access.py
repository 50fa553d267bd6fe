"""The keys, rules and limits of a gateway, kept up to date: files are read again when they change, and signing keys are
fetched from time to time. This module does the I/O of `styx.gateway.auth`.
"""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from styx.errors import ConfigurationError
from styx.gateway.auth import api_keys, policy
from styx.gateway.auth.guard import AddressOf, Guard, Verifier
from styx.gateway.auth.limits import Limits
from styx.gateway.auth.policy import Policy
from styx.gateway.door import OnRefusal
from styx.gateway.watched_files import WatchedFiles
from styx.http.asgi import Application

if TYPE_CHECKING:
    from styx.gateway.auth.tokens import SigningKey

FETCH_WAIT_SECONDS_MAX: Final = 10.0
"""Limit on the fetch of signing keys, with the look-up of their server's name."""
POLICY_BYTES_MAX: Final = 4 * 1024 * 1024

_log = logging.getLogger("styx.gateway")


@dataclass(frozen=True, kw_only=True)
class AccessOptions:
    """The conditions of access. `signing_keys` is a file or an https URL; it needs `issuer` and `audiences`. `rate`, in
    requests a second, and `in_flight`, in requests at once, limit each identity whose key has no own limits.
    `webhooks` are events that may be published without a credential.
    """

    api_keys: Path | None = None
    signing_keys: str | None = None
    issuer: str | None = None
    audiences: tuple[str, ...] = ()
    algorithms: tuple[str, ...] = ()
    policy: Path | None = None
    rate: float | None = None
    in_flight: int | None = None
    webhooks: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.signing_keys is not None and not (self.issuer and self.audiences):
            raise ConfigurationError(
                "tokens must be issued for this gateway: give their issuer with --jwt-issuer and their audience with "
                "--jwt-audience"
            )
        if self.signing_keys is None and (self.issuer or self.audiences or self.algorithms):
            raise ConfigurationError("there is nothing to verify tokens with: give --jwt-keys FILE or https://…")
        if not self.enabled and (self.policy or self.rate is not None or self.in_flight is not None):
            raise ConfigurationError(
                "rules and limits need authenticated clients: give --api-keys FILE or --jwt-keys as well"
            )
        if self.rate is not None and not 0 < self.rate < float("inf"):
            raise ConfigurationError(f"--rate-limit is a number of requests a second above 0, got {self.rate:g}")
        if self.in_flight is not None and self.in_flight < 1:
            raise ConfigurationError(f"--in-flight-limit is a number from 1 on, got {self.in_flight}")

    @property
    def enabled(self) -> bool:
        """Whether clients have to authenticate."""
        return self.api_keys is not None or self.signing_keys is not None


class Access:
    """The state of `options`, which must be enabled. Raises `ConfigurationError` for files that cannot be read."""

    def __init__(self, options: AccessOptions) -> None:
        self._options = options
        self._verifier = Verifier()
        self._guards: list[Guard] = []
        self._policy: Policy | None = None
        self._watched: list[WatchedFiles] = []
        self._fetching: asyncio.Task[bool] | None = None
        self._url = ""
        if options.api_keys is not None:
            self._watched.append(WatchedFiles([options.api_keys], self._read_api_keys))
        if options.policy is not None:
            self._watched.append(WatchedFiles([options.policy], self._read_policy))
        if options.signing_keys is not None:
            self._take_tokens(options.signing_keys)

    def guard(
        self,
        application: Application,
        on_refusal: OnRefusal,
        address_of: AddressOf,
        has_events: Callable[[], bool] = bool,
        has_sql: Callable[[], bool] = bool,
    ) -> Guard:
        """Puts a guard before `application`. `address_of` returns the client address of a request, `has_events` whether
        the app behind it declares events, `has_sql` whether it serves queries.
        """
        limits = Limits(self._options.rate, self._options.in_flight)
        webhooks = frozenset(self._options.webhooks)
        kinds = (has_events, has_sql)
        guard = Guard(application, self._verifier, limits, self._refetch, on_refusal, address_of, webhooks, *kinds)
        guard.policy = self._policy
        self._guards.append(guard)
        return guard

    def poll(self) -> None:
        """Reads changed files, and begins a fetch that is due. The event loop calls it from time to time."""
        for watched in self._watched:
            watched.poll()
        if self._url:
            now_s = time.monotonic()
            if self._times.is_stale(now_s):
                self._verifier.has_signing_keys = False
            if self._times.is_due(now_s, wanted=False):
                self._begin_fetch()

    async def close(self) -> None:
        """Cancels a fetch that is under way."""
        if self._fetching is not None:
            self._fetching.cancel()
            await asyncio.wait([self._fetching])

    # Files -------------------------------------------------------------------------------------------------

    def _read_api_keys(self) -> None:
        assert self._options.api_keys is not None
        self._verifier.ring = api_keys.read_file(self._options.api_keys)

    def _read_policy(self) -> None:
        path = self._options.policy
        assert path is not None
        try:
            data = path.read_bytes()
            if len(data) > POLICY_BYTES_MAX:
                raise ConfigurationError(f"it has {len(data)} bytes; {POLICY_BYTES_MAX} is the most")
            self._policy = policy.parse(data)
        except OSError as error:
            raise ConfigurationError(f"the rules {path} cannot be read: {error.strerror}") from None
        except ConfigurationError as error:
            raise ConfigurationError(f"{path}: {error}") from None
        for guard in self._guards:
            guard.policy = self._policy

    # Signing keys ------------------------------------------------------------------------------------------

    def _take_tokens(self, source: str) -> None:
        try:
            from styx.gateway.auth import signing_keys
            from styx.gateway.auth.tokens import TokenRules, Tokens
        except ImportError as error:
            from styx.process.extras import lacking

            raise ConfigurationError(lacking("tokens (JWT)", error.name, "auth")) from None
        options = self._options
        rules = TokenRules(options.issuer or "", options.audiences)
        if options.algorithms:
            rules = rules._replace(algorithms=options.algorithms)
        self._tokens = self._verifier.tokens = Tokens(rules)
        self._times = signing_keys.FetchTimes()
        if "://" in source:
            signing_keys.check_url(source)
            self._url = source
        else:
            path = Path(source)
            self._watched.append(WatchedFiles([path], lambda: self._use(signing_keys.read_file(path))))

    def _use(self, keys: list[SigningKey]) -> None:
        self._tokens.use(keys)
        self._verifier.has_signing_keys = True

    async def _refetch(self) -> bool:
        """Fetches signing keys unless the last fetch was too recent. Returns whether there are new keys."""
        if not self._url:
            return False
        if self._fetching is None or self._fetching.done():
            if not self._times.is_due(time.monotonic(), wanted=True):
                return False
            self._begin_fetch()
        assert self._fetching is not None
        return await asyncio.shield(self._fetching)

    def _begin_fetch(self) -> None:
        self._times.asked(time.monotonic())
        self._fetching = asyncio.create_task(self._fetch(), name="styx-signing-keys")

    async def _fetch(self) -> bool:
        from styx.gateway.auth.signing_keys import fetch

        try:
            keys = await _on_thread(lambda: fetch(self._url))
        except (OSError, ConfigurationError) as error:
            _log.warning("signing keys could not be fetched, those from before stay in use: %s", error)
            return False
        self._use(keys)
        self._times.had(time.monotonic())
        return True


async def _on_thread(fetch: Callable[[], list[SigningKey]]) -> list[SigningKey]:
    """The result of `fetch`, or its error, or `TimeoutError`. The thread does not keep the process from ending, whereas
    a thread of asyncio would.
    """
    found: Future[list[SigningKey]] = Future()
    found.set_running_or_notify_cancel()  # a caller that no longer waits cannot cancel it

    def run() -> None:
        try:
            found.set_result(fetch())
        except Exception as error:  # noqa: BLE001 - raised where it is waited for
            found.set_exception(error)

    threading.Thread(target=run, name="styx-signing-keys", daemon=True).start()
    async with asyncio.timeout(FETCH_WAIT_SECONDS_MAX):
        return await asyncio.wrap_future(found)
