"""The beginning of a connection: TLS, the protocol's version, who the client is, and a request to cancel another one's
query. Pure: bytes in, effects out.

Only SCRAM-SHA-256 is offered, so that a password is never sent. Where the port has a certificate, nobody gets in
without TLS.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from styx.postgres import wire
from styx.postgres.effects import Authenticated, CancelQuery, Opening, Receive, Send, StartTls, Steps
from styx.postgres.scram import MECHANISM, MECHANISM_PLUS, Exchange
from styx.postgres.sql_errors import (
    BAD_PASSWORD,
    FEATURE_NOT_SUPPORTED,
    NOT_AUTHORIZED,
    ProtocolError,
    SqlError,
)

_SSL: Final = 80_877_103
_GSSENC: Final = 80_877_104
_CANCEL: Final = 80_877_102
VERSION_3_0: Final = 3 << 16
VERSION_3_2: Final = (3 << 16) + 2
_SECRET_BYTES: Final = {VERSION_3_0: 4, VERSION_3_2: 32}
"""Of the key with which a query is cancelled."""
OPTIONS_MAX: Final = 100


class Left(Exception):
    """The client has left."""


class Incoming:
    """The bytes that have come and are no message yet."""

    def __init__(self) -> None:
        self.buffer = bytearray()

    def startup(self) -> Steps:
        """The next message without a letter."""
        while (found := wire.take_startup(self.buffer)) is None:
            yield from self._more()
        return found

    def message(self, bytes_max: int = wire.MESSAGE_BYTES_MAX) -> Steps:
        """The next message: its letter and its fields."""
        while (found := wire.take_message(self.buffer, bytes_max)) is None:
            yield from self._more()
        return found

    def _more(self) -> Steps:
        data = yield Receive()
        if not data:
            raise Left
        self.buffer += data


class Client(NamedTuple):
    """A client that has proved itself. `options`: what else it has said at the beginning."""

    user: str
    database: str
    options: dict[str, str]


def startup(incoming: Incoming, opening: Opening) -> Steps:
    """The client, once it has proved itself; None if it only wanted to cancel. Raises `SqlError` and `Left`."""
    encrypted = False
    while True:
        reader = wire.Reader((yield from incoming.startup()))
        code = reader.int32()
        if code == _CANCEL:
            yield CancelQuery(reader.int32(), reader.rest())
            return None
        if code not in (_SSL, _GSSENC):
            break
        reader.end()
        if code == _SSL and opening.tls and not encrypted:
            if incoming.buffer:
                raise ProtocolError("bytes came before TLS was agreed upon")
            yield Send(b"S")
            yield StartTls()
            encrypted = True
        else:
            yield Send(b"N")
    options = _options(reader)
    version = yield from _negotiated(code, options)
    if opening.tls and not encrypted:
        raise SqlError(
            NOT_AUTHORIZED, "this server takes connections with TLS only: sslmode=require, or better verify-full"
        )
    user = options.pop("user", "")
    if not user:
        raise SqlError(NOT_AUTHORIZED, "no PostgreSQL user name specified in startup packet")
    if options.pop("replication", "off").lower() not in ("off", "false", "no", "0"):
        raise SqlError(FEATURE_NOT_SUPPORTED, "replication connections are not supported")
    yield from _authenticate(incoming, opening, user)
    yield Authenticated(user)
    yield Send(wire.AUTHENTICATED + wire.backend_key(opening.pid, opening.secret[: _SECRET_BYTES[version]]))
    return Client(user, options.pop("database", user), options)


def _options(reader: wire.Reader) -> dict[str, str]:
    found: dict[str, str] = {}
    while name := reader.text():
        found[name] = reader.text()
        if len(found) > OPTIONS_MAX:
            raise ProtocolError(f"a client says at most {OPTIONS_MAX} things at its beginning")
    reader.end()
    return found


def _negotiated(code: int, options: dict[str, str]) -> Steps:
    """The protocol's version; extensions that a client offers are taken out of its options, and refused."""
    if code >> 16 != 3:
        raise SqlError(
            FEATURE_NOT_SUPPORTED,
            f"unsupported frontend protocol {(code >> 16) & 0xFFFF}.{code & 0xFFFF}: server supports 3.0 to 3.2",
        )
    version = VERSION_3_2 if code >= VERSION_3_2 else VERSION_3_0
    refused = [name for name in options if name.startswith("_pq_.")]
    for name in refused:
        del options[name]
    if version != code or refused:
        yield Send(wire.negotiate(version, refused))
    return version


def _authenticate(incoming: Incoming, opening: Opening, user: str) -> Steps:
    binding = opening.certificate_hash
    offered = [MECHANISM_PLUS, MECHANISM] if binding is not None else [MECHANISM]
    yield Send(wire.sasl_mechanisms(offered))
    mechanism, first = wire.read_sasl_initial((yield from _password(incoming)))
    if mechanism not in offered:
        raise ProtocolError("client selected an invalid SASL authentication mechanism")
    exchange = Exchange(opening.verifier_of(user), mechanism, opening.nonce, binding)
    try:
        yield Send(wire.sasl_continue(exchange.first(first)))
        yield Send(wire.sasl_final(exchange.final((yield from _password(incoming)))))
    except ProtocolError:
        raise
    except SqlError:
        raise SqlError(BAD_PASSWORD, f'password authentication failed for user "{user[:63]}"') from None


def _password(incoming: Incoming) -> Steps:
    kind, data = yield from incoming.message(wire.STARTUP_BYTES_MAX)
    if kind != b"p":
        raise ProtocolError("a password is expected, and another message has come")
    return data


def settings_of(client: Client) -> dict[str, str]:
    """The settings that a client has asked for at its beginning, `-c NAME=VALUE` of `options` among them."""
    found: dict[str, str] = {}
    words = client.options.get("options", "").split()
    for before, word in zip(["", *words], words, strict=False):
        text = (
            word
            if before == "-c"
            else word.removeprefix("-c").removeprefix("--")
            if word.startswith(("-c", "--"))
            else ""
        )
        name, equals, value = text.partition("=")
        if equals:
            found[name.replace("-", "_")] = value
    return found | {name: value for name, value in client.options.items() if name != "options"}
