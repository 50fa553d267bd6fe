"""SCRAM-SHA-256, the server's side (RFC 5802, RFC 7677), with channel binding by the server's certificate
(tls-server-end-point, RFC 5929). No password is ever sent, and none is kept: a verifier proves that a client knows it.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import re
from dataclasses import dataclass
from typing import Final

from styx.postgres.saslprep import prepared
from styx.postgres.sql_errors import BAD_PASSWORD, ProtocolError, SqlError

MECHANISM: Final = "SCRAM-SHA-256"
MECHANISM_PLUS: Final = "SCRAM-SHA-256-PLUS"
ITERATIONS: Final = 4_096
"""Of new verifiers, and what clients of unknown users are told."""
ITERATIONS_MAX: Final = 1_000_000
SALT_BYTES: Final = 16
_DIGEST_BYTES: Final = 32
_VERIFIER: Final = re.compile(
    r"SCRAM-SHA-256\$([1-9][0-9]{0,6}+):([A-Za-z0-9+/=]{1,256}+)\$([A-Za-z0-9+/=]{44}):([A-Za-z0-9+/=]{44})"
)
_FIRST: Final = re.compile(
    r"(?P<gs2>(?P<flag>n|y|p=[A-Za-z0-9.-]++),,)(?P<bare>n=[^,]*+,r=(?P<nonce>[!-+\--~]++)(?:,[^,]*+)*+)"
)
_FINAL: Final = re.compile(r"c=(?P<binding>[A-Za-z0-9+/=]++),r=(?P<nonce>[!-+\--~]++)(?:,[^,]*+)*+")


@dataclass(frozen=True)
class Verifier:
    """What proves a password."""

    iterations: int
    salt: bytes
    stored_key: bytes
    server_key: bytes

    def __str__(self) -> str:
        """As PostgreSQL writes it, in `pg_authid.rolpassword`."""
        salt, stored, server = (
            base64.b64encode(each).decode() for each in (self.salt, self.stored_key, self.server_key)
        )
        return f"{MECHANISM}${self.iterations}:{salt}${stored}:{server}"


def make_verifier(password: str, salt: bytes, iterations: int = ITERATIONS) -> Verifier:
    """The verifier of a password; `salt` is `SALT_BYTES` of chance."""
    salted = hashlib.pbkdf2_hmac("sha256", prepared(password), salt, iterations)
    client_key = _hmac(salted, b"Client Key")
    return Verifier(iterations, salt, hashlib.sha256(client_key).digest(), _hmac(salted, b"Server Key"))


def read_verifier(text: str) -> Verifier:
    """The verifier that a text says; raises `ValueError`."""
    found = _VERIFIER.fullmatch(text)
    if found is None or int(found[1]) > ITERATIONS_MAX:
        raise ValueError(f"it is not {MECHANISM}$ITERATIONS:SALT$STORED_KEY:SERVER_KEY")
    try:
        salt, stored, server = (base64.b64decode(found[at], validate=True) for at in (2, 3, 4))
    except binascii.Error as error:
        raise ValueError(f"it is no base64: {error}") from None
    if len(stored) != _DIGEST_BYTES or len(server) != _DIGEST_BYTES:
        raise ValueError("its keys do not have 32 bytes")
    return Verifier(int(found[1]), salt, stored, server)


def nobody(name: str, secret: bytes) -> Verifier:
    """What is proved against for a user that does not exist, so that a client does not learn it: always the same for
    one name, and no password fits.
    """
    salt = _hmac(secret, name.encode(errors="surrogatepass"))
    return Verifier(ITERATIONS, salt[:SALT_BYTES], bytes(_DIGEST_BYTES), bytes(_DIGEST_BYTES))


class Exchange:
    """One attempt to prove a password: `first`, then `final`.

    `nonce`: the server's, printable chance. `binding`: the hash of the server's certificate, None without TLS.
    """

    def __init__(self, verifier: Verifier, mechanism: str, nonce: str, binding: bytes | None) -> None:
        self._verifier = verifier
        self._plus = mechanism == MECHANISM_PLUS
        self._nonce = nonce
        self._binding = binding

    def first(self, data: bytes) -> bytes:
        """The answer to the client's first message; raises `ProtocolError`."""
        found = _FIRST.fullmatch(_as_text(data))
        if found is None:
            raise ProtocolError("the client's first SCRAM message is malformed")
        flag = found["flag"]
        if self._plus != flag.startswith("p=") or (self._plus and flag != "p=tls-server-end-point"):
            raise ProtocolError("the SCRAM mechanism and its channel binding do not fit")
        if flag == "y" and self._binding is not None:
            raise ProtocolError(
                "the client believes that channel binding is not offered, and it is: somebody is between"
            )
        self._header = found["gs2"].encode()
        self._full_nonce = found["nonce"] + self._nonce
        salt = base64.b64encode(self._verifier.salt).decode()
        answer = f"r={self._full_nonce},s={salt},i={self._verifier.iterations}"
        self._before = f"{found['bare']},{answer}"
        return answer.encode()

    def final(self, data: bytes) -> bytes:
        """The answer to the client's proof; raises `ProtocolError`, and `SqlError` if it is none."""
        without, _, proved = _as_text(data).rpartition(",p=")
        found = _FINAL.fullmatch(without)
        if found is None:
            raise ProtocolError("the client's final SCRAM message is malformed")
        expected = self._header + ((self._binding or b"") if self._plus else b"")
        if _decoded(found["binding"]) != expected:
            raise ProtocolError("SCRAM channel binding check failed")
        if not hmac.compare_digest(found["nonce"].encode(), self._full_nonce.encode()):
            raise ProtocolError("the SCRAM nonce is another one")
        said = f"{self._before},{without}".encode()
        proof, signature = _decoded(proved), _hmac(self._verifier.stored_key, said)
        if len(proof) != _DIGEST_BYTES:
            raise ProtocolError("the SCRAM proof is malformed")
        client_key = bytes(a ^ b for a, b in zip(proof, signature, strict=True))
        if not hmac.compare_digest(hashlib.sha256(client_key).digest(), self._verifier.stored_key):
            raise SqlError(BAD_PASSWORD, "password authentication failed")
        return b"v=" + base64.b64encode(_hmac(self._verifier.server_key, said))


def _hmac(key: bytes, data: bytes) -> bytes:
    return hmac.digest(key, data, "sha256")


def _as_text(data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError:
        raise ProtocolError("a SCRAM message is no UTF-8") from None


def _decoded(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except binascii.Error:
        raise ProtocolError("a SCRAM message holds bad base64") from None
