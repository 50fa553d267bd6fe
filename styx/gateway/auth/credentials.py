"""The credential in a request's headers, and the identity that it proves.

Accepted are `Authorization: Bearer CREDENTIAL`, for programs, and `Authorization: Basic` with the credential as the
password, for a person's browser at the docs page. An API key begins with `styx_`; anything else is a token.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from styx.gateway.auth import api_keys
from styx.gateway.auth.api_keys import INVALID, KeyRing
from styx.gateway.auth.identity import CannotTell, Identity, NotProved

MISSING: Final = "this gateway serves only who says who it is: send Authorization: Bearer with an API key or a token"
NO_SIGNING_KEYS: Final = "tokens cannot be verified yet: their signing keys have not arrived"

if TYPE_CHECKING:
    from styx.gateway.auth.tokens import Tokens

Headers = Iterable[tuple[bytes, bytes]]


class NoCredential(NotProved):
    """None was sent."""


def credential_in(headers: Headers) -> str:
    """The credential; raises `NotProved`, `NoCredential` if there is none."""
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


class Verifier:
    """What proves an identity at this moment: `ring` of API keys, `tokens` if any are taken."""

    def __init__(self) -> None:
        self.ring: KeyRing | None = None
        self.tokens: Tokens | None = None
        self.has_signing_keys = False

    def identify(self, credential: str, now_s: float) -> Identity:
        """Whose credential it is, at `now_s` seconds since 1970; raises `NotProved` or `CannotTell`."""
        if credential.startswith(api_keys.PREFIX):
            if self.ring is None:
                raise NotProved(INVALID)
            return self.ring.identify(credential, now_s)
        if self.tokens is None:
            raise NotProved(INVALID)
        if not self.has_signing_keys:
            raise CannotTell(NO_SIGNING_KEYS)
        return self.tokens.identify(credential, now_s)
