"""Who signs tokens in tests: key pairs, the JWK set that tells of them, and tokens with any header and claims."""

from __future__ import annotations

import base64
import json
import time
from functools import cache
from typing import Any

import jwt
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from jwt.algorithms import ECAlgorithm, OKPAlgorithm, RSAAlgorithm

ISSUER = "https://login.example.com"
AUDIENCE = "bank"


class Signer:
    """A key pair, named `id`, that signs by `algorithm`."""

    def __init__(self, key_id: str, algorithm: str) -> None:
        self.id = key_id
        self.algorithm = algorithm
        self.private = _private(key_id, algorithm)

    @property
    def pem(self) -> bytes:
        """The public key."""
        pem: bytes = self.private.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
        return pem

    def jwk(self, **more: Any) -> dict[str, Any]:
        """The public key as a JWK."""
        kinds: dict[str, Any] = {"R": RSAAlgorithm, "P": RSAAlgorithm, "ES": ECAlgorithm, "Ed": OKPAlgorithm}
        kind = kinds.get(self.algorithm[:2]) or kinds[self.algorithm[0]]
        key: dict[str, Any] = json.loads(kind.to_jwk(self.private.public_key()))
        key.pop("key_ops", None)
        return {**key, "kid": self.id, **more}

    def token(self, headers: dict[str, Any] | None = None, **claims: Any) -> str:
        """A token that is good now, but for what is said; a claim of None is left out."""
        now = time.time()
        said = {"iss": ISSUER, "aud": AUDIENCE, "sub": "alice", "exp": now + 600, **claims}
        said = {name: value for name, value in said.items() if value is not None}
        payload = json.dumps(said).encode()
        token: str = jwt.PyJWS().encode(payload, self.private, self.algorithm, {"kid": self.id, **(headers or {})})
        return token


def jwks(*signers: Signer) -> dict[str, Any]:
    return {"keys": [signer.jwk() for signer in signers]}


def unsigned(header: dict[str, Any], claims: dict[str, Any], signature: bytes = b"") -> str:
    parts = (json.dumps(header).encode(), json.dumps(claims).encode(), signature)
    return ".".join(base64.urlsafe_b64encode(part).rstrip(b"=").decode() for part in parts)


@cache
def _private(key_id: str, algorithm: str) -> Any:
    if algorithm.startswith("ES"):
        return ec.generate_private_key({"ES256": ec.SECP256R1, "ES384": ec.SECP384R1}[algorithm]())
    if algorithm == "EdDSA":
        return ed25519.Ed25519PrivateKey.generate()
    return rsa.generate_private_key(65_537, 2_048)
