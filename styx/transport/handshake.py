"""The handshake: both sides prove that they know the cluster's secret, and introduce themselves. It is a
challenge-response with HMAC-SHA256; the secret itself is never sent.

    dialer    Challenge   magic, version, nonce
    listener  Challenge   magic, version, nonce
    dialer    Proof       hello, MAC over "dialer",   both challenges, hello
    listener  Proof       hello, MAC over "listener", both challenges, the dialer's proof, hello

Each MAC covers the other side's new nonce, so that a recorded handshake cannot be replayed, and names its own side, so
that a message sent back to its sender is no proof. The dialer proves itself first: a stranger who only reaches a port
learns no names, and nothing to guess the secret from. A side that finds a fault answers with a refusal, and the
connection ends.

The handshake authenticates the peer, but not each later frame: use TLS in networks where packets can be altered.
"""

from __future__ import annotations

import enum
import hmac
import secrets
from typing import Final, Literal, TypeVar

import msgspec

from styx.errors import ConfigurationError
from styx.transport.frame import UNAUTHENTICATED_FRAME_BYTES_MAX, prefix_of
from styx.values.codec import shown

VERSION: Final = 4
"""Of everything that processes of a cluster must have in common: handshake, messages, what stands in log and store, and
the outcomes that a recorded epoch has. Both sides must have the same one; releases that share it can be mixed.
"""
NONCE_BYTES: Final = 32

NO_HANDSHAKE: Final = (
    "what it sent is not a handshake; is it a process of this cluster, and do both use TLS, or neither?"
)

_MAGIC: Final = "styx"
_DIALER: Final = b"styx dialer"
_LISTENER: Final = b"styx listener"

_T = TypeVar("_T")

Role = Literal["worker", "coordinator", "gateway", "operator"]


class Hello(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A process's introduction. `address` is its listening address, or empty; `facts` are its caller's."""

    cluster: str
    role: Role
    name: str
    incarnation: str
    address: str = ""
    facts: dict[str, str] = {}


class Refusal(enum.StrEnum):
    """The reason for a refusal. The first four are also sent to the peer."""

    MALFORMED = "malformed"
    VERSION = "version"
    CLUSTER = "cluster"
    SECRET = "secret"
    TLS = "tls"
    TOO_SLOW = "too_slow"
    HUNG_UP = "hung_up"


class Refused(ConnectionError):
    """One side did not accept the other. `refusal` is the reason as a code, the text says what to do.

    `answer` is the payload for the peer, None without one.
    """

    def __init__(self, refusal: Refusal, message: str, answer: bytes | None = None) -> None:
        super().__init__(message)
        self.refusal = refusal
        self.answer = answer


class _Challenge(msgspec.Struct, frozen=True, array_like=True):
    # Fields of a later version are accepted here, so that the versions can be compared.
    magic: str
    version: int
    nonce: bytes


class _Proof(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True, tag="proof"):
    hello: bytes
    mac: bytes


class _Refusal(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True, tag="refused"):
    refusal: Literal["malformed", "version", "cluster", "secret"]


_TOLD: Final = {
    "malformed": "it could not read the handshake; is there something between the two that changes what they send?",
    "version": f"it is of a release with another version of the protocol than {VERSION}, and the two never form a "
    "cluster; upgrade one of them",
    "cluster": "it belongs to another cluster; check the address and the cluster's name",
    "secret": "it has another secret; give every process of the cluster the same one",
}

_challenge = msgspec.msgpack.Decoder(_Challenge)
_refusal = msgspec.msgpack.Decoder(_Refusal)
_proof = msgspec.msgpack.Decoder(_Proof | _Refusal)
_hello = msgspec.msgpack.Decoder(Hello)
_encode = msgspec.msgpack.encode


class Handshake:
    """One side of a handshake: payloads in, payloads out. `peer` is set once the other side has proved itself."""

    def __init__(self, secret: bytes, hello: Hello) -> None:
        if not secret:
            raise ConfigurationError("the cluster's secret is empty; give every process of the cluster the same secret")
        self.peer: Hello | None = None
        self._secret = secret
        self._cluster = hello.cluster
        self._hello = _encode(hello)
        self._own_challenge = _encode(_Challenge(_MAGIC, VERSION, secrets.token_bytes(NONCE_BYTES)))
        proof_bytes = len(_encode(_Proof(self._hello, bytes(NONCE_BYTES))))
        if proof_bytes > UNAUTHENTICATED_FRAME_BYTES_MAX:
            raise ConfigurationError(
                f"a hello of {proof_bytes} bytes is over the limit of {UNAUTHENTICATED_FRAME_BYTES_MAX}: "
                f"shorten the facts of {shown(hello.name)}"
            )

    def _proof_of_self(self, label: bytes, *before: bytes) -> bytes:
        return _encode(_Proof(self._hello, self._mac(label, *before, self._hello)))

    def _check_proof(self, payload: bytes, label: bytes, *before: bytes) -> Hello:
        message = _decoded(_proof, payload)
        if isinstance(message, _Refusal):
            raise _told(message)
        hello = _decoded(_hello, message.hello)
        # Before the secret: two clusters have two secrets, and this text is the more helpful one.
        if hello.cluster != self._cluster:
            cause = f"it belongs to cluster {shown(hello.cluster)}, this one to {shown(self._cluster)}"
            raise _refuse(Refusal.CLUSTER, cause)
        if not hmac.compare_digest(message.mac, self._mac(label, *before, message.hello)):
            raise _refuse(Refusal.SECRET, _TOLD["secret"])
        return hello

    def _mac(self, label: bytes, *parts: bytes) -> bytes:
        # With their lengths, so that different lists of parts give different bytes.
        text = b"".join(piece for part in (label, *parts) for piece in (prefix_of(len(part)), part))
        return hmac.digest(self._secret, text, "sha256")


class DialerHandshake(Handshake):
    """The side that connected."""

    def __init__(self, secret: bytes, hello: Hello) -> None:
        super().__init__(secret, hello)
        self._sent: tuple[bytes, ...] = ()

    def start(self) -> bytes | None:
        """The first payload to send."""
        return self._own_challenge

    def receive(self, payload: bytes) -> bytes | None:
        """The answer to a payload, None at the end. Raises `Refused`."""
        if not self._sent:
            _check_challenge(payload)
            proof = self._proof_of_self(_DIALER, self._own_challenge, payload)
            self._sent = (self._own_challenge, payload, proof)
            return proof
        try:
            self.peer = self._check_proof(payload, _LISTENER, *self._sent)
        except Refused as refused:
            refused.answer = None  # after its proof a listener reads no more of the handshake
            raise
        return None


class ListenerHandshake(Handshake):
    """The side that was connected to."""

    def __init__(self, secret: bytes, hello: Hello) -> None:
        super().__init__(secret, hello)
        self._challenges: tuple[bytes, ...] = ()

    def start(self) -> bytes | None:
        """Nothing: the other side begins."""
        return None

    def receive(self, payload: bytes) -> bytes | None:
        """The answer to a payload. Raises `Refused`."""
        if not self._challenges:
            _check_challenge(payload)
            self._challenges = (payload, self._own_challenge)
            return self._own_challenge
        self.peer = self._check_proof(payload, _DIALER, *self._challenges)
        return self._proof_of_self(_LISTENER, *self._challenges, payload)


def refuse_malformed(cause: str) -> Refused:
    """The refusal of a peer that does not speak the protocol."""
    return _refuse(Refusal.MALFORMED, cause)


def _check_challenge(payload: bytes) -> None:
    try:
        refusal = _refusal.decode(payload)
    except (msgspec.DecodeError, UnicodeDecodeError):
        pass
    else:
        raise _told(refusal)
    challenge = _decoded(_challenge, payload)
    if challenge.magic != _MAGIC:
        raise refuse_malformed(NO_HANDSHAKE)
    if challenge.version != VERSION:
        raise _refuse(
            Refusal.VERSION,
            f"it is of a release with version {challenge.version} of the protocol, this process of one with version "
            f"{VERSION}, and the two never form a cluster; upgrade one of them",
        )
    if len(challenge.nonce) != NONCE_BYTES:
        raise refuse_malformed(f"its nonce has {len(challenge.nonce)} bytes instead of {NONCE_BYTES}")


def _decoded(decoder: msgspec.msgpack.Decoder[_T], payload: bytes) -> _T:
    try:
        return decoder.decode(payload)
    except (msgspec.DecodeError, UnicodeDecodeError):
        # The cause would show the peer's bytes, which belong into no log.
        raise refuse_malformed(NO_HANDSHAKE) from None


def _refuse(refusal: Refusal, cause: str) -> Refused:
    return Refused(refusal, f"the peer was refused: {cause}", _encode(_Refusal(refusal.value)))  # type: ignore[arg-type]


def _told(message: _Refusal) -> Refused:
    return Refused(Refusal(message.refusal), f"the peer refused: {_TOLD[message.refusal]}")
