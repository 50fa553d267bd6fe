"""Tokens: which are taken, and the many ways in which one is not."""

import base64
import hmac
import json
import time
from hashlib import sha256
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import rsa
from jwt.algorithms import RSAAlgorithm

from styx import ConfigurationError
from styx.gateway.auth.identity import NotProved, UnknownKey
from styx.gateway.auth.tokens import LEEWAY_SECONDS, REMEMBERED_MAX, TokenRules, Tokens, read_jwks, read_pem
from tests.gateway.auth.signers import AUDIENCE, ISSUER, Signer, jwks, unsigned

RSA, ES, ED = Signer("rsa-1", "RS256"), Signer("es-1", "ES256"), Signer("ed-1", "EdDSA")
RULES = TokenRules(ISSUER, (AUDIENCE, "shop"))
NOW = time.time()


def taking(*signers: Signer, rules: TokenRules = RULES) -> Tokens:
    tokens = Tokens(rules)
    tokens.use(read_jwks(jwks(*signers)))
    return tokens


@pytest.mark.parametrize("signer", [RSA, ES, ED, Signer("ps", "PS256")], ids=lambda signer: signer.algorithm)
def test_good_ones(signer: Signer) -> None:
    identity = taking(signer).identify(signer.token(role="teller"), NOW)
    assert (identity.name, identity.source) == ("alice", "token alice")
    assert identity.claims is not None
    assert identity.claims["role"] == "teller"


def test_a_key_of_several_and_one_of_several_audiences() -> None:
    tokens = taking(RSA, ES, ED)
    for signer in (RSA, ES, ED):
        assert tokens.identify(signer.token(aud=["other", "shop"]), NOW).name == "alice"


@pytest.mark.parametrize(
    "claims",
    [
        *({"iss": "https://evil.example"}, {"iss": None}, {"iss": [ISSUER]}, {"iss": ISSUER + "/"}),
        *({"aud": "other"}, {"aud": None}, {"aud": []}, {"aud": ["other"]}),
        *({"exp": None}, {"exp": "soon"}, {"exp": True}, {"exp": NOW - LEEWAY_SECONDS - 1}, {"exp": 0}),
        *({"nbf": NOW + 600}, {"nbf": "later"}, {"sub": None}, {"sub": ""}, {"sub": "x" * 300}),
    ],
)
def test_claims_that_do_not_fit(claims: dict[str, Any]) -> None:
    with pytest.raises(NotProved):
        taking(RSA).identify(RSA.token(**claims), NOW)


def test_times_are_looked_at_each_time() -> None:
    tokens = taking(RSA)
    token = RSA.token(exp=NOW + 100, nbf=NOW)
    assert tokens.identify(token, NOW + 100 + LEEWAY_SECONDS - 1).name == "alice"
    with pytest.raises(NotProved, match="expired"):
        tokens.identify(token, NOW + 100 + LEEWAY_SECONDS)
    with pytest.raises(NotProved, match="not valid yet"):
        tokens.identify(token, NOW - LEEWAY_SECONDS - 1)


GOOD = {"iss": ISSUER, "aud": AUDIENCE, "sub": "alice", "exp": NOW + 600}


def hs256(secret: bytes, header: dict[str, Any]) -> str:
    signed = unsigned(header, GOOD).rpartition(".")[0]
    signature = hmac.digest(secret, signed.encode(), sha256)
    return signed + "." + base64.urlsafe_b64encode(signature).rstrip(b"=").decode()


FORGED = [
    *(unsigned({"alg": alg, "kid": "rsa-1"}, GOOD) for alg in ("none", "None", "NONE", "", "HS256")),
    *(unsigned({"alg": alg, "kid": "rsa-1"}, GOOD) for alg in (None, ["RS256"], {"a": 1}, 1)),
    hs256(RSA.pem, {"alg": "HS256", "kid": "rsa-1"}),
    hs256(RSA.pem.strip(), {"alg": "HS256", "kid": "rsa-1"}),
    hs256(json.dumps(RSA.jwk()).encode(), {"alg": "HS256", "kid": "rsa-1"}),
    unsigned({"alg": "RS256", "kid": "rsa-1"}, GOOD),
    unsigned({"alg": "RS256", "kid": "rsa-1"}, GOOD, b"x" * 256),
    Signer("other", "RS256").token({"kid": "rsa-1"}),
    Signer("other", "RS256").token(
        {"kid": "rsa-1", "jwk": Signer("other", "RS256").jwk(), "jku": "https://evil.example"}
    ),
    ES.token({"kid": "rsa-1"}),
    RSA.token({"crit": ["b64"], "b64": False}),
    RSA.token({"b64": False}),
    *("", ".", "..", "a.b.c", "x" * 20_000, RSA.token() + "x", RSA.token()[:-8], RSA.token() + ".x", "\ud800.a.b"),
    RSA.token().replace(".", ".."),
    unsigned({"alg": "RS256", "kid": 1}, GOOD),
]


@pytest.mark.parametrize("token", FORGED, ids=range(len(FORGED)))
def test_forged_ones(token: str) -> None:
    with pytest.raises(NotProved):
        taking(RSA, ES).identify(token, NOW)


def test_a_changed_claim() -> None:
    header, body, signature = RSA.token().split(".")
    claims = json.loads(base64.urlsafe_b64decode(body + "=="))
    changed = base64.urlsafe_b64encode(json.dumps({**claims, "sub": "mallory"}).encode()).rstrip(b"=").decode()
    with pytest.raises(NotProved):
        taking(RSA).identify(f"{header}.{changed}.{signature}", NOW)


def test_keys_that_came_and_went() -> None:
    tokens, new = taking(RSA), Signer("rsa-2", "RS256")
    token = RSA.token()
    assert tokens.identify(token, NOW).name == "alice"
    with pytest.raises(UnknownKey):
        tokens.identify(new.token(), NOW)
    tokens.use(read_jwks(jwks(new)))
    assert tokens.identify(new.token(), NOW).name == "alice"
    with pytest.raises(NotProved):
        tokens.identify(token, NOW)  # although it was good before


def test_what_is_remembered_is_bounded() -> None:
    tokens = taking(ED)
    for number in range(REMEMBERED_MAX + 10):
        tokens.identify(ED.token(sub=str(number)), NOW)
    assert len(tokens._known) == REMEMBERED_MAX


def test_only_allowed_algorithms() -> None:
    with pytest.raises(NotProved):
        taking(ES, rules=RULES._replace(algorithms=("RS256",))).identify(ES.token(), NOW)
    for algorithm in ("none", "HS256", "HS512", "rs256", ""):
        with pytest.raises(ConfigurationError, match="is no algorithm for tokens"):
            Tokens(RULES._replace(algorithms=(algorithm,)))


def test_a_key_is_for_its_own_algorithm() -> None:
    """PS256 with a key that says RS256: the signature would be right."""
    tokens = Tokens(RULES)
    tokens.use(read_jwks({"keys": [RSA.jwk(alg="RS256")]}))
    assert tokens.identify(RSA.token(), NOW)
    with pytest.raises(NotProved):
        tokens.identify(jwt.encode(GOOD, RSA.private, "PS256", {"kid": "rsa-1"}), NOW)


def test_a_pem_key_needs_no_id() -> None:
    tokens = Tokens(RULES)
    tokens.use([read_pem(RSA.pem)])
    assert tokens.identify(RSA.token(), NOW)
    assert tokens.identify(jwt.encode(GOOD, RSA.private, "RS256"), NOW)


def test_keys_that_do_not_sign_are_left_out() -> None:
    small = rsa.generate_private_key(65_537, 1_024).public_key()
    weak = {**json.loads(RSAAlgorithm.to_jwk(small)), "kid": "small"}
    secret = {"kty": "oct", "k": "c2VjcmV0", "kid": "secret", "alg": "HS256"}
    odd = [RSA.jwk(use="enc"), {"kty": "RSA"}, {"kty": "XX"}, {}, 1, {**RSA.jwk(), "n": "!"}, RSA.jwk(alg="HS256")]
    assert [key.id for key in read_jwks({"keys": [weak, secret, *odd, ES.jwk(use="sig")]})] == ["es-1"]
    with pytest.raises(ConfigurationError, match="has no public key for signatures"):
        read_jwks({"keys": [weak, secret, *odd]})
    wrong: list[Any] = [None, [], {}, {"keys": {}}, {"keys": [ES.jwk()] * 101}]
    for content in wrong:
        with pytest.raises(ConfigurationError, match="a JWK set is an object"):
            read_jwks(content)
    for pem in (b"", b"x", b"-----BEGIN CERTIFICATE-----"):
        with pytest.raises(ConfigurationError):
            read_pem(pem)


@pytest.mark.parametrize(
    "odd",
    [
        *({"key_ops": None}, {"key_ops": 5}, {"key_ops": "verify"}, {"kty": []}, {"kty": {}}, {"alg": ["RS256"]}),
        *(
            {"alg": {}},
            {"kid": 5},
            {"kid": []},
            {"use": []},
            {"n": 5},
            {"n": None},
            {"n": []},
            {"e": {}},
            {"e": "\ud800"},
        ),
    ],
)
def test_an_odd_entry_costs_only_itself(odd: dict[str, Any], caplog: pytest.LogCaptureFixture) -> None:
    assert [key.id for key in read_jwks({"keys": [RSA.jwk() | odd, ES.jwk()]})] == ["es-1"]
    assert "entry 1 of the JWK set is no key" in caplog.text


@pytest.mark.parametrize(
    "claims",
    [
        *({"exp": float("nan")}, {"exp": float("inf")}, {"exp": 10**400}, {"nbf": -(10**400)}, {"nbf": float("nan")}),
        *({"sub": "a\ud800"}, {"exp": 1e300}),
    ],
)
def test_claims_beyond_what_can_be(claims: dict[str, Any]) -> None:
    with pytest.raises(NotProved):
        taking(RSA).identify(RSA.token(**claims), NOW)
