"""Only who knows the secret is believed, now and in its own role; everybody else is told why not."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from styx.errors import ConfigurationError
from styx.transport import Hello, Refusal, Refused
from styx.transport.handshake import VERSION, DialerHandshake, Handshake, ListenerHandshake
from tests.transport.peers import SECRET, hello_of

A, B = hello_of("a"), hello_of("b", "coordinator")


def sides(dialer_secret: bytes = SECRET, dialer: Hello = A) -> tuple[DialerHandshake, ListenerHandshake]:
    return DialerHandshake(dialer_secret, dialer), ListenerHandshake(SECRET, B)


def run(dialer: DialerHandshake, listener: ListenerHandshake) -> list[bytes]:
    """All payloads, in turn: of the dialer, of the listener, and so on."""
    payloads: list[bytes] = []
    payload = dialer.start()
    sides: tuple[Handshake, Handshake] = listener, dialer
    while payload is not None:
        payloads.append(payload)
        side = sides[len(payloads) % 2 == 0]
        assert isinstance(side, DialerHandshake | ListenerHandshake)
        payload = side.receive(payload)
    return payloads


def refusal_of(side: DialerHandshake | ListenerHandshake, payload: bytes) -> Refused:
    with pytest.raises(Refused) as caught:
        side.receive(payload)
    assert side.peer is None
    return caught.value


def test_both_sides_know_each_other() -> None:
    dialer, listener = sides()
    assert len(run(dialer, listener)) == 4
    assert dialer.peer == B
    assert listener.peer == A


def test_the_secret_and_the_names_are_not_sent_to_strangers() -> None:
    payloads = run(*sides())
    assert not any(SECRET in payload for payload in payloads)
    assert b"coordinator" not in payloads[1]  # all that a stranger gets from a listener
    assert len(payloads[1]) < 64


def test_no_two_handshakes_are_alike() -> None:
    first, second = run(*sides()), run(*sides())
    assert not set(first) & set(second)


def test_another_secret() -> None:
    with pytest.raises(Refused) as caught:
        run(*sides(b"wrong"))
    assert caught.value.refusal is Refusal.SECRET
    assert caught.value.answer is not None
    dialer = sides()[0]
    dialer.receive(run(*sides())[1])
    told = refusal_of(dialer, caught.value.answer)
    assert told.refusal is Refusal.SECRET
    assert told.answer is None
    assert "another secret" in str(told)


def test_a_listener_without_the_secret_is_refused_by_the_dialer() -> None:
    dialer, impostor = DialerHandshake(SECRET, A), ListenerHandshake(b"wrong", B)
    challenge = impostor.receive(dialer.start() or b"")
    assert challenge is not None
    proof = dialer.receive(challenge)
    assert proof is not None
    forged = impostor._proof_of_self(b"styx listener", *impostor._challenges, proof)
    refused = refusal_of(dialer, forged)
    assert refused.refusal is Refusal.SECRET
    assert refused.answer is None  # it would be read as a message


def test_another_cluster_is_said_rather_than_another_secret() -> None:
    with pytest.raises(Refused, match="cluster 'c2', this one to 'c1'") as caught:
        run(*sides(b"wrong", hello_of("a", cluster="c2")))
    assert caught.value.refusal is Refusal.CLUSTER


def test_another_version() -> None:
    for side in sides():
        refused = refusal_of(side, msgspec.msgpack.encode(["styx", VERSION + 1, b"", "a field of a later version"]))
        assert refused.refusal is Refusal.VERSION
        assert f"with version {VERSION + 1} of the protocol, this process of one with version {VERSION}" in str(refused)
        assert refused.answer is not None
        told = refusal_of(sides()[0], refused.answer)
        assert told.refusal is Refusal.VERSION


def test_a_replayed_proof_is_refused() -> None:
    recorded = run(*sides())
    _, listener = sides()
    listener.receive(recorded[0])
    assert refusal_of(listener, recorded[2]).refusal is Refusal.SECRET


def test_a_replayed_answer_is_refused() -> None:
    recorded = run(*sides())
    dialer, _ = sides()
    dialer.receive(recorded[1])
    assert refusal_of(dialer, recorded[3]).refusal is Refusal.SECRET


def test_what_a_side_sent_proves_nothing_to_itself() -> None:
    dialer, _ = sides()
    challenge = dialer.start()
    assert challenge is not None
    proof = dialer.receive(challenge)  # reflected: as good a challenge as any
    assert proof is not None
    assert refusal_of(dialer, proof).refusal is Refusal.SECRET


def test_a_proof_is_of_one_side_only() -> None:
    dialer, listener = sides()
    recorded = run(dialer, listener)
    dialer, listener = sides()
    challenge = listener.receive(dialer.start() or b"")
    assert challenge is not None
    proof = dialer.receive(challenge)
    assert proof is not None
    as_a_dialer = listener._proof_of_self(b"styx dialer", *listener._challenges, proof)
    assert len(as_a_dialer) == len(recorded[3])
    assert refusal_of(dialer, as_a_dialer).refusal is Refusal.SECRET


def test_a_listener_is_no_oracle_for_another_connection_to_it() -> None:
    # An attacker gives the listener's own challenge back to it, and its answers from one connection to the other.
    one, other = ListenerHandshake(SECRET, B), ListenerHandshake(SECRET, B)
    challenge = one.receive(DialerHandshake(SECRET, A).start() or b"")
    assert challenge is not None
    answer = other.receive(challenge)
    assert answer is not None
    assert refusal_of(one, answer).refusal is Refusal.MALFORMED


def test_no_bit_of_a_handshake_can_be_changed() -> None:
    for turn in range(4):
        for bit in range(0, 8 * len(run(*sides())[turn]), 3):
            dialer, listener = sides()
            with pytest.raises(Refused):
                run_with_a_flipped_bit(dialer, listener, turn, bit)
            assert dialer.peer is None


def run_with_a_flipped_bit(dialer: DialerHandshake, listener: ListenerHandshake, turn: int, bit: int) -> None:
    payload = dialer.start()
    for step in range(4):
        assert payload is not None
        if step == turn:
            changed = bytearray(payload)
            changed[bit // 8 % len(changed)] ^= 1 << bit % 8
            payload = bytes(changed)
        payload = (listener, dialer)[step % 2].receive(payload)


@given(st.binary(max_size=200))
def test_garbage_is_malformed_and_never_shown(garbage: bytes) -> None:
    for side in sides():
        refused = refusal_of(side, garbage)
        assert refused.refusal in (Refusal.MALFORMED, Refusal.VERSION)
        assert "not a handshake" in str(refused)


@pytest.mark.parametrize(
    "hello",
    [
        b"\xc1",
        {"cluster": "c1", "role": "admin", "name": "a", "incarnation": "1"},
        {"cluster": "c1", "role": "worker", "name": "a"},
        {"cluster": "c1", "role": "worker", "name": 5, "incarnation": "1"},
        {"cluster": "c1", "role": "worker", "name": "a", "incarnation": "1", "more": 1},
    ],
)
def test_a_hello_is_read_strictly(hello: object) -> None:
    dialer, listener = sides()
    listener.receive(dialer.start() or b"")
    encoded = hello if isinstance(hello, bytes) else msgspec.msgpack.encode(hello)
    proof = msgspec.msgpack.encode(["proof", encoded, bytes(32)])
    assert refusal_of(listener, proof).refusal is Refusal.MALFORMED


def test_another_protocol_of_the_same_form() -> None:
    for side in sides():
        assert refusal_of(side, msgspec.msgpack.encode(["styy", 1, bytes(32)])).refusal is Refusal.MALFORMED


def test_a_nonce_must_be_whole() -> None:
    for side in sides():
        refused = refusal_of(side, msgspec.msgpack.encode(["styx", VERSION, bytes(31)]))
        assert "31 bytes instead of 32" in str(refused)


def test_what_cannot_work_is_said_before_anything_is_sent() -> None:
    with pytest.raises(ConfigurationError, match="secret is empty"):
        DialerHandshake(b"", A)
    long = msgspec.structs.replace(A, facts={"name": "x" * 5000})
    with pytest.raises(ConfigurationError, match="shorten the facts of 'a'"):
        ListenerHandshake(SECRET, long)
