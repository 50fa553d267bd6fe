"""Tokens (JWT): the identity that a token's signature and claims prove. The cryptography is PyJWT's.

A token is accepted only if its signature's algorithm is allowed and fits the public key. A token without a signature,
or one signed with a shared secret, is never accepted: an attacker could use the public key as the secret.
"""

from __future__ import annotations

import logging
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from hashlib import sha256
from typing import Any, Final, NamedTuple

import jwt
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.hazmat.primitives.serialization import load_pem_public_key
from cryptography.x509 import load_pem_x509_certificate
from jwt.algorithms import ECAlgorithm, OKPAlgorithm, RSAAlgorithm

from styx.errors import ConfigurationError
from styx.gateway.auth.identity import INVALID, Identity, NotProved, UnknownKey
from styx.values.codec import shown

ALGORITHMS: Final = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA")
TOKEN_CHARS_MAX: Final = 16 * 1024
SIGNING_KEYS_MAX: Final = 100
SUBJECT_CHARS_MAX: Final = 200
LEEWAY_SECONDS: Final = 30
"""The allowed difference between clocks."""
REMEMBERED_MAX: Final = 4_096
"""Limit on the remembered tokens, whose signatures are not verified again."""
RSA_BITS_MIN: Final = 2_048
TIME_MAX: Final = 1e13
"""Limit on the absolute value of a time in a claim, in seconds since 1970. It excludes NaN and the infinities."""

_CURVES: Final = {"secp256r1": "ES256", "secp384r1": "ES384", "secp521r1": "ES512"}
_KINDS: Final[dict[str, Any]] = {"RSA": RSAAlgorithm, "EC": ECAlgorithm, "OKP": OKPAlgorithm}

_log = logging.getLogger("styx.gateway")


class SigningKey(NamedTuple):
    """A public key (an object of `cryptography`), its algorithms, and its id, which may be empty."""

    id: str
    key: Any
    algorithms: frozenset[str]


class TokenRules(NamedTuple):
    """The conditions for a token. Its audience is one of `audiences`."""

    issuer: str
    audiences: tuple[str, ...]
    algorithms: tuple[str, ...] = ("RS256", "PS256", "ES256", "EdDSA")


class Tokens:
    """Verifies tokens against the present signing keys, and remembers verified tokens."""

    def __init__(self, rules: TokenRules) -> None:
        for algorithm in rules.algorithms:
            if algorithm not in ALGORITHMS:
                raise ConfigurationError(
                    f"{shown(algorithm)} is no algorithm for tokens: there are {', '.join(ALGORITHMS)}. Those with a "
                    "shared secret (HS256) are not taken"
                )
        self._rules = rules
        self._allowed = frozenset(rules.algorithms)
        self._keys: tuple[SigningKey, ...] = ()
        # By the token's hash: the identity, and the times between which the token is valid. Tokens are not kept.
        self._known: OrderedDict[bytes, tuple[Identity, float, float]] = OrderedDict()

    def use(self, keys: Sequence[SigningKey]) -> None:
        """Replaces the signing keys."""
        self._keys = tuple(keys)
        self._known.clear()

    def identify(self, token: str, now_s: float) -> Identity:
        """The identity that a token proves. Raises `NotProved`, and `UnknownKey` if an unknown key may have
        signed it.
        """
        if len(token) > TOKEN_CHARS_MAX or not token.isascii():
            raise NotProved(INVALID)
        name = sha256(token.encode()).digest()
        known = self._known.get(name)
        if known is None:
            known = self._verified(token)
            self._known[name] = known
            if len(self._known) > REMEMBERED_MAX:
                self._known.popitem(last=False)
        identity, begins_s, ends_s = known
        if now_s >= ends_s + LEEWAY_SECONDS:
            raise NotProved("the token has expired")
        if now_s < begins_s - LEEWAY_SECONDS:
            raise NotProved("the token is not valid yet")
        return identity

    def _verified(self, token: str) -> tuple[Identity, float, float]:
        try:
            header = jwt.get_unverified_header(token)
        except (jwt.PyJWTError, ValueError, TypeError, RecursionError):
            raise NotProved(INVALID) from None
        algorithm, key_id = header.get("alg"), header.get("kid", "")
        if not isinstance(algorithm, str) or algorithm not in self._allowed or "crit" in header or "b64" in header:
            raise NotProved(INVALID)
        for signing_key in self._candidates(algorithm, key_id):
            try:
                claims = jwt.decode(
                    token,
                    key=signing_key.key,
                    algorithms=[algorithm],
                    audience=self._rules.audiences,
                    issuer=self._rules.issuer,
                    options={
                        "require": ["exp", "iss", "aud", "sub"],
                        # Times are checked with each request, also for a remembered token.
                        "verify_exp": False,
                        "verify_nbf": False,
                        "verify_iat": False,
                    },
                )
            except jwt.InvalidSignatureError:
                continue
            except (jwt.PyJWTError, ValueError, TypeError, OverflowError, RecursionError):
                raise NotProved(INVALID) from None
            return _identity(claims)
        raise NotProved(INVALID)

    def _candidates(self, algorithm: str, key_id: object) -> list[SigningKey]:
        fit = [key for key in self._keys if algorithm in key.algorithms]
        if key_id != "":
            named = [key for key in fit if key.id == key_id]
            # A single key without an id, as from a PEM file, fits every token.
            found = named or [key for key in fit if not key.id and len(self._keys) == 1]
        else:
            found = fit if len(self._keys) == 1 else []
        if not found:
            raise UnknownKey(INVALID)
        return found


def _identity(claims: dict[str, Any]) -> tuple[Identity, float, float]:
    subject, ends_s, begins_s = claims["sub"], claims["exp"], claims.get("nbf", 0)
    if not _is_time(ends_s) or not _is_time(begins_s) or not _is_name(subject):
        raise NotProved(INVALID)
    return Identity(subject, "token " + subject, claims), float(begins_s), float(ends_s)


def _is_time(value: object) -> bool:
    """Whether a value is a possible time in seconds since 1970. It is compared before it is converted, because a
    conversion may overflow.
    """
    return isinstance(value, int | float) and not isinstance(value, bool) and -TIME_MAX <= value <= TIME_MAX


def _is_name(value: object) -> bool:
    if not isinstance(value, str) or not 0 < len(value) <= SUBJECT_CHARS_MAX:
        return False
    return not any("\ud800" <= char <= "\udfff" for char in value)  # half of a surrogate pair cannot be encoded


def read_jwks(content: object) -> list[SigningKey]:
    """The public keys of a JWK set that sign with a known algorithm. Raises `ConfigurationError`."""
    entries = content.get("keys") if isinstance(content, Mapping) else None
    if not isinstance(entries, list) or len(entries) > SIGNING_KEYS_MAX:
        raise ConfigurationError(f'a JWK set is an object with a list "keys" of at most {SIGNING_KEYS_MAX}')
    found = []
    for number, entry in enumerate(entries, 1):
        try:
            key = _read_jwk(entry)
        except (jwt.PyJWTError, ValueError, TypeError, RecursionError) as error:
            _log.warning("entry %d of the JWK set is no key and is left out: %s", number, type(error).__name__)
            continue
        if key is not None:
            found.append(key)
    if not found:
        raise ConfigurationError("the JWK set has no public key for signatures: RSA of 2048 bits, EC or Ed25519")
    return found


def _read_jwk(entry: object) -> SigningKey | None:
    """The signing key in an entry; None for a key with another use. Raises `TypeError` or PyJWT's errors for no key."""
    if not isinstance(entry, Mapping):
        raise TypeError
    operations = entry.get("key_ops", ["verify"])
    kty, key_id, use = entry.get("kty", ""), entry.get("kid", ""), entry.get("use", "sig")
    texts = (kty, key_id, use, entry.get("alg", ""))
    if not isinstance(operations, list) or not all(isinstance(text, str) for text in texts):
        raise TypeError
    kind = _KINDS.get(kty)
    if kind is None or use != "sig" or "verify" not in operations:
        return None
    key = kind.from_jwk({name: value for name, value in entry.items() if name in ("kty", "crv", "n", "e", "x", "y")})
    algorithms = _algorithms_of(key)
    if "alg" in entry:
        algorithms &= {entry["alg"]}
    return SigningKey(key_id, key, algorithms) if algorithms else None


def read_pem(data: bytes) -> SigningKey:
    """The public key, or certificate, in a PEM file; raises `ConfigurationError`."""
    try:
        key = load_pem_x509_certificate(data).public_key() if b"CERTIFICATE" in data else load_pem_public_key(data)
    except (ValueError, TypeError) as error:
        raise ConfigurationError(f"it holds no PEM public key: {error}") from None
    algorithms = _algorithms_of(key)
    if not algorithms:
        raise ConfigurationError(f"its key is none that signs tokens: RSA of {RSA_BITS_MIN} bits, EC or Ed25519")
    return SigningKey("", key, algorithms)


def _algorithms_of(key: object) -> frozenset[str]:
    if isinstance(key, rsa.RSAPublicKey) and key.key_size >= RSA_BITS_MIN:
        return frozenset({"RS256", "RS384", "RS512", "PS256", "PS384", "PS512"})
    if isinstance(key, ec.EllipticCurvePublicKey) and key.curve.name in _CURVES:
        return frozenset({_CURVES[key.curve.name]})
    return frozenset({"EdDSA"}) if isinstance(key, ed25519.Ed25519PublicKey) else frozenset()
