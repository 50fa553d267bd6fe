"""SCRAM-SHA-256: the example of RFC 7677, PostgreSQL's form of verifiers, channel binding, and SASLprep."""

from __future__ import annotations

import base64

import pytest

from styx.errors import ConfigurationError
from styx.postgres.saslprep import prepared
from styx.postgres.scram import MECHANISM, MECHANISM_PLUS, Exchange, make_verifier, nobody, read_verifier
from styx.postgres.sql_errors import ProtocolError, SqlError
from styx.postgres.users import read_users
from tests.postgres.conversation import CLIENT_NONCE, PASSWORD, USERS, client_proof

SALT = base64.b64decode("W22ZaJ0SNY7soEsUEjb6gQ==")


def test_the_example_of_the_rfc() -> None:
    exchange = Exchange(make_verifier("pencil", SALT), MECHANISM, "%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0", None)
    first = exchange.first(b"n,,n=user,r=rOprNGfwEbeRWgbNEkqO")
    assert first == b"r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096"
    final = exchange.final(
        b"c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ="
    )
    assert final == b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4="


def test_a_verifier_comes_back_as_it_was_written() -> None:
    verifier = make_verifier("pencil", SALT)
    assert str(verifier).startswith("SCRAM-SHA-256$4096:W22ZaJ0SNY7soEsUEjb6gQ==$")
    assert read_verifier(str(verifier)) == verifier
    for bad in (
        "",
        "md5aa",
        str(verifier)[:-1],
        str(verifier) + "x",
        str(verifier).replace("4096", "0"),
        "SCRAM-SHA-256$9999999:" + str(verifier)[19:],
    ):
        with pytest.raises(ValueError, match="SCRAM-SHA-256"):
            read_verifier(bad)


def test_no_proof_fits_nobody() -> None:
    verifier = nobody("eve", b"secret")
    assert verifier == nobody("eve", b"secret") != nobody("bob", b"secret")
    exchange = Exchange(verifier, MECHANISM, "s", None)
    first = exchange.first(f"n,,n=,r={CLIENT_NONCE}".encode())
    with pytest.raises(SqlError, match="authentication failed"):
        exchange.final(client_proof("", first.decode()))


def run(mechanism: str, gs2: str, binding: bytes | None, sent: bytes = b"") -> bytes:
    exchange = Exchange(USERS["ann"], mechanism, "server", binding)
    first = exchange.first(f"{gs2}n=,r={CLIENT_NONCE}".encode())
    return exchange.final(client_proof(PASSWORD, first.decode(), gs2=gs2, binding=sent))


def test_channel_binding() -> None:
    assert run(MECHANISM_PLUS, "p=tls-server-end-point,,", b"hash", b"hash")
    assert run(MECHANISM, "n,,", b"hash")
    assert run(MECHANISM, "y,,", None)
    with pytest.raises(ProtocolError, match="channel binding check failed"):
        run(MECHANISM_PLUS, "p=tls-server-end-point,,", b"hash", b"other")
    with pytest.raises(ProtocolError, match="somebody is between"):
        run(MECHANISM, "y,,", b"hash")
    for mechanism, gs2 in (
        (MECHANISM_PLUS, "n,,"),
        (MECHANISM, "p=tls-server-end-point,,"),
        (MECHANISM_PLUS, "p=tls-unique,,"),
    ):
        with pytest.raises(ProtocolError, match="do not fit"):
            run(mechanism, gs2, b"hash")


def test_another_nonce_is_refused() -> None:
    exchange = Exchange(USERS["ann"], MECHANISM, "server", None)
    first = exchange.first(f"n,,n=,r={CLIENT_NONCE}".encode()).decode()
    with pytest.raises(ProtocolError, match="nonce"):
        exchange.final(client_proof(PASSWORD, first.replace("nonceserver", "nonceother")))


@pytest.mark.parametrize(
    ("password", "found"),
    [
        ("I\u00adX", "IX"),
        ("user", "user"),
        ("\u00aa", "a"),
        ("\u2168", "IX"),
        ("a\u00a0b", "a b"),
        ("\u0007", "\u0007"),
        ("\u06271", "\u06271"),
        ("pa\u0308ss", "p\u00e4ss"),
        ("", ""),
    ],
)
def test_saslprep(password: str, found: str) -> None:
    assert prepared(password) == found.encode()


def test_the_file_of_users() -> None:
    verifier = make_verifier("x", SALT)
    text = f"# users\n\nann:{verifier}\nb:c d:{verifier}\n"
    assert read_users(text) == {"ann": verifier, "b:c d": verifier}
    for bad, told in {
        "ann:secret": "line 1 of the users is not NAME:SCRAM-SHA-256",
        f"\n:{verifier}": "line 2 of the users is not",
        "ann:SCRAM-SHA-256$x": "line 1 of the users has no verifier",
        f"ann:{verifier}\nann:{verifier}": "line 2 of the users names one that an earlier line has",
    }.items():
        with pytest.raises(ConfigurationError, match=told) as raised:
            read_users(bad)
        assert "secret" not in str(raised.value)
