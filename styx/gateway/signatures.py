"""Signatures of webhooks: what proves that a request is the sender's. Their secrets stand in the gateway's environment.

They are compared in constant time. Without its secret a signature is never valid.
"""

from __future__ import annotations

import base64
import binascii
import hmac
import os
import time
from collections.abc import Mapping
from datetime import timedelta
from typing import Final

from styx.errors import ConfigurationError, NotSent
from styx.values.codec import shown

ENCODINGS: Final = ("hex", "base64")
SIGNATURES_MAX: Final = 10
"""Signatures in one header that are looked at: senders send two while they change their secret."""


class HmacSignature:
    """The HMAC of the body in a header, as GitHub, Shopify and many others send it.

    `header`: its name. `variable`: the environment variable of the gateways that has the secret. `prefix`: what stands
    before the signature. `digest`: as for `hashlib`. `encoding`: "hex" or "base64". Raises `ConfigurationError`.
    """

    def __init__(
        self, header: str, variable: str, *, prefix: str = "", digest: str = "sha256", encoding: str = "hex"
    ) -> None:
        for what, text in (("header", header), ("variable", variable)):
            if not isinstance(text, str) or not text:
                raise ConfigurationError(f"HmacSignature({what}=…) is a name, got {shown(text)}")
        if not isinstance(prefix, str):
            raise ConfigurationError(f"HmacSignature(prefix=…) is a text, got {shown(prefix)}")
        if encoding not in ENCODINGS:
            raise ConfigurationError(f"HmacSignature(encoding=…) is one of {ENCODINGS}, got {shown(encoding)}")
        try:
            hmac.new(b"", b"", digest)
        except (ValueError, TypeError):
            raise ConfigurationError(f"HmacSignature(digest=…) is a hash such as 'sha256': {shown(digest)}") from None
        self._header = header.lower()
        self._variable = variable
        self._prefix = prefix
        self._digest = digest
        self._encoding = encoding

    def __call__(self, headers: Mapping[str, str], body: bytes) -> bool:
        """Whether the header has the body's signature. Raises `NotSent` without a secret."""
        secret = _secret(self._variable)
        sent = headers.get(self._header, "")
        if not sent.startswith(self._prefix):
            return False
        digest = hmac.new(secret, body, self._digest).digest()
        return hmac.compare_digest(digest, _bytes_of(sent.removeprefix(self._prefix), self._encoding))


class TimedSignature:
    """The HMAC of a time and the body, as Stripe sends it: `t=1700000000,v1=HEX`; an old one is not valid.

    `header` and `variable` are as for `HmacSignature`. `tolerance`: how far the time may be from the gateway's.
    """

    def __init__(
        self,
        variable: str,
        *,
        header: str = "Stripe-Signature",
        scheme: str = "v1",
        tolerance: timedelta = timedelta(minutes=5),
    ) -> None:
        for what, text in (("variable", variable), ("header=…", header), ("scheme=…", scheme)):
            if not isinstance(text, str) or not text:
                raise ConfigurationError(f"TimedSignature({what}) is a name, got {shown(text)}")
        if not isinstance(tolerance, timedelta) or tolerance <= timedelta(0):
            raise ConfigurationError(f"TimedSignature(tolerance=…) is a timedelta above 0, got {shown(tolerance)}")
        self._header = header.lower()
        self._variable = variable
        self._scheme = scheme
        self._tolerance_s = tolerance.total_seconds()

    def __call__(self, headers: Mapping[str, str], body: bytes) -> bool:
        """Whether the header has a signature of the body, of now. Raises `NotSent` without a secret."""
        secret = _secret(self._variable)
        parts = [part.strip().partition("=")[::2] for part in headers.get(self._header, "").split(",")]
        sent_at = next((value for name, value in parts if name == "t"), "")
        if not sent_at.isascii() or not sent_at.isdigit() or len(sent_at) > 12:
            return False
        if abs(time.time() - int(sent_at)) > self._tolerance_s:
            return False
        digest = hmac.new(secret, sent_at.encode() + b"." + body, "sha256").digest()
        signatures = [value for name, value in parts if name == self._scheme][:SIGNATURES_MAX]
        return any(hmac.compare_digest(digest, _bytes_of(each, "hex")) for each in signatures)


def _secret(variable: str) -> bytes:
    secret = os.environ.get(variable, "")
    if not secret:
        raise NotSent(f"{variable} is not set in this gateway's environment, so no signature can be checked")
    return secret.encode("utf-8", "surrogateescape")


def _bytes_of(text: str, encoding: str) -> bytes:
    try:
        return bytes.fromhex(text) if encoding == "hex" else base64.b64decode(text, validate=True)
    except (ValueError, binascii.Error):
        return b""
