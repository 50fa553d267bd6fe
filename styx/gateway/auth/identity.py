"""The proved identity of a request's sender, and the ways in which a proof fails."""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import blake2b
from typing import Any, Final, NamedTuple

import msgspec

IDENTITY: Final = "styx.identity"
"""The name in an ASGI scope of the sender's `Identity`."""
UNPROVED: Final = "styx.unproved"
"""Stands in an ASGI scope if a webhook was let in without a credential: its signature has to prove it."""
API_KEY: Final = "api_key"
TOKEN: Final = "token"
INVALID: Final = "the credential is not valid"
_FINGERPRINT_BYTES: Final = 16


class Identity(NamedTuple):
    """A proved identity. `name` is for rules, logs and people. Limits are counted by `source`, which stands for a key
    or a token's subject. `claims` are those of a token, None for an API key. `rate`, in requests a second, and
    `in_flight` are its own limits; None: the gateway's.
    """

    name: str
    source: str
    claims: Mapping[str, Any] | None = None
    rate: float | None = None
    in_flight: int | None = None

    @property
    def kind(self) -> str:
        """The kind of the proof: `api_key` or `token`."""
        return API_KEY if self.claims is None else TOKEN

    @property
    def fingerprint(self) -> str:
        """32 hex digits that no other identity has. They are made of an API key's name, which stays when the key is
        exchanged, or of a token's issuer and subject.
        """
        issuer = "" if self.claims is None else self.claims.get("iss")
        whole = msgspec.json.encode((self.kind, issuer, self.name))
        return blake2b(whole, digest_size=_FINGERPRINT_BYTES).hexdigest()


class NotProved(Exception):
    """The credential proves no identity. The message goes to the sender, and contains no part of the credential."""


class CannotTell(Exception):
    """A token cannot be verified now, because the signing keys have not been fetched yet."""


class UnknownKey(NotProved):
    """The token was signed by an unknown key, which the next fetch may bring."""
