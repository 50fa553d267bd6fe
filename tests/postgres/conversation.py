"""One side of a transcript: sends a client's messages to a session, answers its effects, and prints what comes back.

Queries run by DuckDB in this process, without tables of anybody's; all chance is fixed.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import shlex
import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

import duckdb
import msgspec
import pyarrow as pa

from styx.postgres.effects import Authenticated, CancelQuery, Next, Open, Opening, Receive, Send, StartTls, Steps, Stop
from styx.postgres.saslprep import prepared
from styx.postgres.scram import Verifier, make_verifier, nobody
from styx.postgres.session import session
from styx.postgres.sql_errors import QUERY_CANCELED, SqlError, of_duckdb
from styx.query.arrow import marked
from styx.query.service import PARAMETER_TYPES, Asked
from styx.query.sql_process import Refused, named

PASSWORD: Final = "pencil"
USERS: Final = {"ann": make_verifier(PASSWORD, b"salt of ann here")}
CLIENT_NONCE: Final = "client-nonce"
SERVER_NONCE: Final = "server-nonce"
EPOCH: Final = 7


def verifier_of(name: str) -> Verifier:
    return USERS.get(name) or nobody(name, b"secret")


def opening(**changes: Any) -> Opening:
    """What each session is given."""
    given = {"pid": 42, "secret": bytes(range(32)), "nonce": SERVER_NONCE, "verifier_of": verifier_of}
    return Opening(**{**given, **changes})


@dataclass(frozen=True)
class Answered:
    """As `Answer`, without its rows."""

    epoch: int
    schema: pa.Schema


class Queries:
    """DuckDB in the place of a query service."""

    def __init__(self) -> None:
        self.running: dict[int, Iterator[pa.RecordBatch]] = {}
        self.asked: list[Asked] = []
        self.cancelled = False  # whether rows fail to come

    def open(self, number: int, asked: Asked) -> Answered:
        self.asked.append(asked)
        connection = duckdb.connect(":memory:", config={"threads": 1})
        try:
            types = named(connection, asked.sql, []).parameters
            for statement in asked.prelude:
                connection.execute(statement).fetchall()
            relation = connection.sql(
                asked.sql, params=[None] * len(types) if asked.describe else list(asked.parameters)
            )
            reader = (relation.limit(0) if asked.describe else relation).to_arrow_reader(3)
        except (duckdb.Error, Refused) as error:
            raise of_duckdb(str(error)) from None
        schema = marked(reader.schema, [str(each) for each in relation.types])
        schema = schema.with_metadata({PARAMETER_TYPES: msgspec.json.encode(types)})
        self.running[number] = iter(reader)
        return Answered(EPOCH, schema)


class Conversation:
    """A client and a session."""

    def __init__(self, **changes: Any) -> None:
        self.queries = Queries()
        self.effects: list[str] = []
        self.sent = bytearray()
        self.ended = False
        self._steps: Steps = session(opening(**changes))
        self._effect: Any = next(self._steps)
        self._advance()

    def send(self, data: bytes) -> bytes:
        """What the session sends for these bytes; none of them mean that the client leaves."""
        self.sent.clear()
        if not self.ended:
            assert isinstance(self._effect, Receive)
            self._step(data)
            self._advance()
        return bytes(self.sent)

    def _advance(self) -> None:
        """Answers effects until bytes are wanted."""
        while not self.ended and not isinstance(self._effect, Receive):
            answer, error = None, None
            match self._effect:
                case Send(data):
                    self.sent += data
                case Open(number, asked, _):
                    try:
                        answer = self.queries.open(number, asked)
                    except SqlError as failed:
                        error = failed
                case Next() if self.queries.cancelled:
                    error = SqlError(QUERY_CANCELED, "canceling statement due to user request")
                case Next(number):
                    answer = next(self.queries.running[number], None)
                case Stop(number):
                    del self.queries.running[number]
                case StartTls():
                    self.effects.append("TLS begins")
                case Authenticated(user):
                    self.effects.append(f"{user} is authenticated")
                case CancelQuery(pid, secret):
                    self.effects.append(f"cancel {pid} {secret.hex()}")
            self._step(answer, error)

    def _step(self, answer: Any, error: SqlError | None = None) -> None:
        try:
            self._effect = self._steps.send(answer) if error is None else self._steps.throw(error)
        except StopIteration:
            self.ended = True


# A client's messages -------------------------------------------------------------------------------------------------


def text(value: str) -> bytes:
    return value.encode() + b"\0"


def framed(kind: bytes, data: bytes = b"") -> bytes:
    return kind + struct.pack("!i", len(data) + 4) + data


def startup(options: Mapping[str, str], code: int = 3 << 16) -> bytes:
    data = struct.pack("!i", code) + b"".join(text(n) + text(v) for n, v in options.items()) + b"\0"
    return struct.pack("!i", len(data) + 4) + data


def client_proof(password: str, server_first: str, user: str = "", gs2: str = "n,,", binding: bytes = b"") -> bytes:
    """The client's final SCRAM message (RFC 5802, section 3), made apart from the server's code."""
    parts = dict(each.split("=", 1) for each in server_first.split(","))
    salted = hashlib.pbkdf2_hmac("sha256", prepared(password), base64.b64decode(parts["s"]), int(parts["i"]))
    client_key = hmac.digest(salted, b"Client Key", "sha256")
    without = f"c={base64.b64encode(gs2.encode() + binding).decode()},r={parts['r']}"
    said = f"n={user},r={CLIENT_NONCE},{server_first},{without}"
    signature = hmac.digest(hashlib.sha256(client_key).digest(), said.encode(), "sha256")
    proof = bytes(a ^ b for a, b in zip(client_key, signature, strict=True))
    return f"{without},p={base64.b64encode(proof).decode()}".encode()


def sasl_initial(gs2: str = "n,,", mechanism: str = "SCRAM-SHA-256") -> bytes:
    first = f"{gs2}n=,r={CLIENT_NONCE}".encode()
    return framed(b"p", text(mechanism) + struct.pack("!i", len(first)) + first)


def sign_in(conversation: Conversation, password: str = PASSWORD, **options: str) -> bytes:
    """Goes through the beginning; what the session sends at its end."""
    conversation.send(startup({"user": "ann", "database": "shop", **options}))
    answer = conversation.send(sasl_initial())
    return conversation.send(framed(b"p", client_proof(password, answer[9:].decode())))


def parse(name: str, sql: str, *types: int) -> bytes:
    return framed(b"P", text(name) + text(sql) + struct.pack(f"!H{len(types)}I", len(types), *types))


def bind(
    portal: str, statement: str, *values: bytes | None, formats: tuple[int, ...] = (), results: tuple[int, ...] = ()
) -> bytes:
    data = text(portal) + text(statement) + struct.pack(f"!H{len(formats)}H", len(formats), *formats)
    data += struct.pack("!H", len(values))
    for each in values:
        data += struct.pack("!i", -1) if each is None else struct.pack("!i", len(each)) + each
    return framed(b"B", data + struct.pack(f"!H{len(results)}H", len(results), *results))


def command_bytes(line: str) -> bytes:
    """The bytes of a line of a transcript, such as `query select 1`."""
    verb, _, rest = line.partition(" ")
    words = shlex.split(rest) if verb not in ("query",) else []
    match verb:
        case "query":
            return framed(b"Q", text(rest))
        case "parse":
            return parse(words[0], words[1], *map(int, words[2:]))
        case "bind":
            values = [None if each == "NULL" else each.encode() for each in words[2:] if each != "binary"]
            return bind(words[0], words[1], *values, results=(1,) if "binary" in words else ())
        case "describe" | "close":
            kind = {"statement": b"S", "portal": b"P"}[words[0]]
            return framed(b"D" if verb == "describe" else b"C", kind + text(words[1]))
        case "execute":
            return framed(b"E", text(words[0]) + struct.pack("!i", int(words[1])))
        case "sync" | "flush" | "terminate":
            return framed({"sync": b"S", "flush": b"H", "terminate": b"X"}[verb])
        case "bytes":
            return bytes.fromhex(rest)
    raise ValueError(line)


# A server's messages as prose ----------------------------------------------------------------------------------------

_NAMES: Final = {
    b"1": "parsed",
    b"2": "bound",
    b"3": "closed",
    b"n": "no data",
    b"s": "portal suspended",
    b"I": "empty query",
}
_AUTHENTICATION: Final = {0: "authenticated", 10: "SASL by", 11: "SASL goes on:", 12: "SASL ends:"}


def messages(data: bytes) -> Iterator[tuple[bytes, bytes]]:
    while data:
        length = struct.unpack("!i", data[1:5])[0]
        yield data[:1], data[5 : 1 + length]
        data = data[1 + length :]


def described(kind: bytes, data: bytes) -> str:
    """A message as a line."""
    match kind:
        case b"R":
            rest = data[4:].replace(b"\0", b" ").decode().strip()
            return f"{_AUTHENTICATION[struct.unpack('!i', data[:4])[0]]} {rest}".strip()
        case b"S":
            return "{} is {}".format(*data.decode().split("\0"))
        case b"K":
            return f"key {struct.unpack('!i', data[:4])[0]} {data[4:].hex()}"
        case b"v":
            version, count = struct.unpack("!ii", data[:8])
            return f"at most 3.{version & 0xFFFF}, without {count} options {data[8:]!r}"
        case b"Z":
            return f"ready, {({'I': 'idle', 'T': 'in a transaction', 'E': 'in a failed transaction'})[data.decode()]}"
        case b"C":
            return f"done: {data[:-1].decode()}"
        case b"E" | b"N":
            fields = {each[:1].decode(): each[1:].decode() for each in data.split(b"\0") if each}
            place = f" at {fields['P']}" if "P" in fields else ""
            return f"{fields['S']} {fields['C']}{place}: {fields['M']}"
        case b"T":
            return "columns " + ", ".join(_columns(data))
        case b"t":
            return f"parameters {list(struct.unpack(f'!{len(data) // 4}I', data[2:]))}"
        case b"D":
            return "row " + " | ".join(_values(data))
    return _NAMES[kind]


def _columns(data: bytes) -> Iterator[str]:
    data = data[2:]
    while data:
        end = data.index(0)
        oid, format = struct.unpack("!I", data[end + 7 : end + 11])[0], data[end + 18]
        yield f"{data[:end].decode()} {oid}{' binary' if format else ''}"
        data = data[end + 19 :]


def _values(data: bytes) -> Iterator[str]:
    data = data[2:]
    while data:
        length = struct.unpack("!i", data[:4])[0]
        value = data[4 : 4 + max(length, 0)]
        printable = all(32 <= each < 127 for each in value) and value.isascii()
        yield "NULL" if length == -1 else value.decode() if printable else f"0x{value.hex()}"
        data = data[4 + max(length, 0) :]


def lines(data: bytes) -> list[str]:
    """Messages as lines."""
    return [described(*each) for each in messages(data)]
