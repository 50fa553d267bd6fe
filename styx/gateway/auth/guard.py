"""The guard of a gateway, as an ASGI application around it: the identity that a request's credential proves, whether a
rule allows its action, and whether it is within limits. A refused client learns nothing about the gateway behind it.

Accepted are `Authorization: Bearer CREDENTIAL`, for programs, and `Authorization: Basic` with the credential as the
password, for a person's browser at the docs page. An API key begins with `styx_`; anything else is a token.
"""

from __future__ import annotations

import base64
import binascii
import logging
import time
from collections.abc import Awaitable, Callable, Collection, Iterable
from typing import TYPE_CHECKING, Final

from styx.gateway import head
from styx.gateway.auth import api_keys
from styx.gateway.auth.api_keys import KeyRing
from styx.gateway.auth.identity import IDENTITY, INVALID, UNPROVED, CannotTell, Identity, NotProved, UnknownKey
from styx.gateway.auth.limits import TOO_MANY_FAILED, FailedAttempts, Limits
from styx.gateway.auth.policy import PUBLISH, SEE, Policy, action_of
from styx.gateway.door import OnRefusal, refuse, refused
from styx.gateway.origin import HEALTH_PATHS, Refusal
from styx.http.asgi import Application, Receive, Scope, Send
from styx.http.direct import Direct
from styx.http.direct_request import DirectRequest

if TYPE_CHECKING:
    from styx.gateway.auth.tokens import Tokens

MISSING: Final = "this gateway serves only who says who it is: send Authorization: Bearer with an API key or a token"
NO_SIGNING_KEYS: Final = "tokens cannot be verified yet: their signing keys have not arrived"
_CHALLENGE: Final = (b"www-authenticate", b'Bearer realm="styx"')
_CHALLENGE_INVALID: Final = (b"www-authenticate", b'Bearer realm="styx", error="invalid_token"')
_CHALLENGE_PERSON: Final = (b"www-authenticate", b'Basic realm="styx", charset="UTF-8"')

_log = logging.getLogger("styx.gateway")

Refetch = Callable[[], Awaitable[bool]]
AddressOf = Callable[[Scope], str]
Headers = Iterable[tuple[bytes, bytes]]


class Verifier:
    """Verifies credentials: with the API keys of `ring`, and with `tokens` if tokens are accepted."""

    def __init__(self) -> None:
        self.ring: KeyRing | None = None
        self.tokens: Tokens | None = None
        self.has_signing_keys = False

    def identify(self, credential: str, now_s: float) -> Identity:
        """The identity that a credential proves at `now_s` seconds since 1970. Raises `NotProved` or `CannotTell`."""
        if credential.startswith(api_keys.PREFIX):
            if self.ring is None:
                raise NotProved(INVALID)
            return self.ring.identify(credential, now_s)
        if self.tokens is None:
            raise NotProved(INVALID)
        if not self.has_signing_keys:
            raise CannotTell(NO_SIGNING_KEYS)
        return self.tokens.identify(credential, now_s)


class Guard:
    """Serves `application` behind `verifier`, `limits` and a policy. Without a policy each identity may do everything.

    `refetch` fetches signing keys again, and returns whether there are new ones. `address_of` returns the client
    address of a request. `webhooks` are events that may be published without a credential: their inlets check a
    signature. `has_events`: whether the app declares events. `has_sql`: whether queries are served. `policy` may be
    replaced at any time.
    """

    def __init__(
        self,
        application: Application,
        verifier: Verifier,
        limits: Limits,
        refetch: Refetch,
        on_refusal: OnRefusal,
        address_of: AddressOf,
        webhooks: Collection[str] = (),
        has_events: Callable[[], bool] = bool,
        has_sql: Callable[[], bool] = bool,
    ) -> None:
        self.policy: Policy | None = None
        self._application = application
        self._verifier = verifier
        self._limits = limits
        self._refetch = refetch
        self._on_refusal = on_refusal
        self._address_of = address_of
        self._webhooks = webhooks
        self._has_events = has_events
        self._has_sql = has_sql
        self._failed_attempts = FailedAttempts()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """The ASGI interface."""
        path = head.path(scope)
        if path in HEALTH_PATHS and scope["method"] in ("GET", "HEAD"):
            await self._application(scope, receive, send)
            return
        if self._webhooks and self._is_webhook(scope):
            scope[UNPROVED] = True
            await self._application(scope, receive, send)
            return
        try:
            identity = await self._identity(scope)
        except NotProved as error:
            await self._refuse_unproved(error, scope, receive, send)
            return
        except CannotTell as error:
            await self._refuse(Refusal("unavailable", str(error)), scope, receive, send)
            return
        except Exception as error:  # noqa: BLE001 - logged and answered; who sends odd things learns nothing from it
            # The log has no traceback, because that could show the credential.
            _log.error("a credential could not be looked at: %s", type(error).__name__)
            await self._refuse(Refusal("internal", "the gateway failed; nothing was run"), scope, receive, send)
            return
        scope[IDENTITY] = identity
        forbidden = self._forbidden(identity, scope)
        if forbidden is not None:
            await self._refuse(forbidden, scope, receive, send)
            return
        exceeded = self._limits.enter(identity, time.monotonic())
        if exceeded is not None:
            await self._refuse_for_now(exceeded.what, exceeded.retry_s, scope, receive, send)
            return
        try:
            await self._application(scope, receive, send)
        finally:
            self._limits.leave(identity)

    def around(self, direct: Direct) -> Direct:
        """The direct way to `direct` behind this guard. What the guard refuses by its credential or by a rule, and what
        needs signing keys that are not here, is left to ASGI.
        """
        return _DirectGuard(self, direct)

    def identity_at_once(self, request: DirectRequest) -> Identity | None:
        """Who has sent a request that may be served, as far as that is known without waiting."""
        try:
            identity = self._verifier.identify(credential_in(request.headers), time.time())
        except Exception:  # noqa: BLE001 - looked at again behind ASGI, where it is told
            return None
        if self.policy is not None and self._forbidden(identity, request.scope()) is not None:
            return None
        return identity

    def serve(self, request: DirectRequest, identity: Identity, direct: Direct) -> None:
        """Serves it within the limits of `identity`."""
        exceeded = self._limits.enter(identity, time.monotonic())
        if exceeded is not None:
            refusal, headers = _for_now(exceeded.what, exceeded.retry_s)
            self._on_refusal({**request.scope(), IDENTITY: identity}, refusal)
            request.answer(*refused(refusal, headers))
            return
        request.answered += (lambda _, __: self._limits.leave(identity),)
        direct.serve(request)

    def _forbidden(self, identity: Identity, scope: Scope) -> Refusal | None:
        if self.policy is None:
            return None
        action = action_of(scope, self._has_events, self._has_sql)
        if self.policy.allows(identity, action):
            return None
        what = "this" if action is None else str(action)
        return Refusal("forbidden", f"{identity.name} may not {what}")

    def _is_webhook(self, scope: Scope) -> bool:
        action = action_of(scope)
        if action is None or action.kind != PUBLISH or action.target not in self._webhooks:
            return False
        return not any(name == b"authorization" for name, _ in scope["headers"])

    async def _identity(self, scope: Scope) -> Identity:
        credential = credential_in(scope["headers"])
        try:
            return self._verifier.identify(credential, time.time())
        except (UnknownKey, CannotTell):
            if not await self._refetch():
                raise
            return self._verifier.identify(credential, time.time())

    async def _refuse_unproved(self, error: NotProved, scope: Scope, receive: Receive, send: Send) -> None:
        if not isinstance(error, NoCredential):
            retry_s = self._failed_attempts.failed(self._address_of(scope), time.monotonic())
            if retry_s is not None:
                await self._refuse_for_now(TOO_MANY_FAILED, retry_s, scope, receive, send)
                return
        await self._refuse(Refusal("unauthenticated", str(error)), scope, receive, send, _challenges(scope, error))

    async def _refuse_for_now(self, why: str, retry_s: int, scope: Scope, receive: Receive, send: Send) -> None:
        refusal, headers = _for_now(why, retry_s)
        await self._refuse(refusal, scope, receive, send, headers)

    async def _refuse(
        self,
        refusal: Refusal,
        scope: Scope,
        receive: Receive,
        send: Send,
        headers: tuple[tuple[bytes, bytes], ...] = (),
    ) -> None:
        self._on_refusal(scope, refusal)
        await refuse(refusal, receive, send, scope, headers)


class _DirectGuard:
    def __init__(self, guard: Guard, direct: Direct) -> None:
        self._guard = guard
        self._direct = direct

    def takes(self, request: DirectRequest) -> bool:
        if not self._direct.takes(request):
            return False
        request.client_is = self._guard.identity_at_once(request)
        return request.client_is is not None

    def serve(self, request: DirectRequest) -> None:
        assert isinstance(request.client_is, Identity), "it was taken"
        self._guard.serve(request, request.client_is, self._direct)


def _for_now(why: str, retry_s: int) -> tuple[Refusal, tuple[tuple[bytes, bytes], ...]]:
    later = (b"retry-after", b"%d" % retry_s)
    return Refusal("rate_limited", f"{why}; try again in {retry_s} s"), (later,)


def _challenges(scope: Scope, error: NotProved) -> tuple[tuple[bytes, bytes], ...]:
    """The headers that name the accepted credentials. Only for a page do they make a browser ask for a password."""
    challenge = _CHALLENGE if isinstance(error, NoCredential) else _CHALLENGE_INVALID
    action = action_of(scope)
    wants_page = any(name == b"accept" and b"text/html" in value for name, value in scope["headers"])
    if wants_page and action is not None and action.kind == SEE:
        return (challenge, _CHALLENGE_PERSON)
    return (challenge,)


class NoCredential(NotProved):
    """The request has no credential."""


def credential_in(headers: Headers) -> str:
    """The credential in the headers. Raises `NoCredential` if there is none, and `NotProved` for several."""
    sent = [value for name, value in headers if name == b"authorization"]
    if not sent:
        raise NoCredential(MISSING)
    if len(sent) > 1:
        raise NotProved(INVALID)
    scheme, _, rest = sent[0].decode("latin-1").partition(" ")
    credential = rest.strip()
    if scheme.lower() == "basic":
        credential = _password(credential)
    elif scheme.lower() != "bearer":
        raise NoCredential(MISSING)
    if not credential:
        raise NoCredential(MISSING)
    return credential


def _password(encoded: str) -> str:
    try:
        text = base64.b64decode(encoded, validate=True).decode("utf-8")
    except (binascii.Error, ValueError):
        raise NotProved(INVALID) from None
    return text.partition(":")[2]
