"""No bytes of a client raise anything: a session answers them, or ends with an error of the protocol."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from styx.postgres.commands import command
from styx.postgres.decode import decode
from styx.postgres.lexer import statements
from styx.postgres.sql_errors import SqlError
from styx.postgres.startup import OPTIONS_MAX
from styx.postgres.types import BY_ARRAY, BY_OID
from styx.postgres.wire import STARTUP_BYTES_MAX
from tests.postgres.conversation import Conversation, bind, framed, lines, parse, sasl_initial, sign_in, startup, text

ANY = st.binary(max_size=200)
FRAMED = st.builds(framed, st.sampled_from([bytes([each]) for each in b"QPBDECSHFXdcfpZ\0"]), ANY)
SQL = st.sampled_from(
    [
        "select 1",
        "show all",
        "begin",
        "commit",
        "select $1::int",
        "fetch 1 from c",
        "declare c cursor for select 1",
        "",
        ";",
    ]
)
NAMES = st.sampled_from(["", "a", "b"])
SENSIBLE = st.one_of(
    st.builds(lambda sql: framed(b"Q", text(sql)), SQL),
    st.builds(parse, NAMES, SQL, st.sampled_from([0, 23, 25, 1007, 999_999])),
    st.builds(
        bind,
        NAMES,
        NAMES,
        st.sampled_from([b"1", None, b"\0\0\0\1", b"{1}"]),
        formats=st.sampled_from([(), (1,)]),
        results=st.sampled_from([(), (1,)]),
    ),
    st.builds(lambda kind, name: framed(b"D", kind + text(name)), st.sampled_from([b"S", b"P"]), NAMES),
    st.builds(lambda name, rows: framed(b"E", text(name) + struct.pack("!i", rows)), NAMES, st.integers(-5, 5)),
    st.sampled_from([framed(b"S"), framed(b"H")]),
)


@given(st.lists(ANY, max_size=4))
@settings(max_examples=300, deadline=None)
def test_any_bytes_at_the_beginning(chunks: list[bytes]) -> None:
    conversation = Conversation()
    for each in [*chunks, b""]:
        conversation.send(each)
    assert conversation.ended


@given(st.lists(st.one_of(ANY, st.builds(framed, st.just(b"p"), ANY)), max_size=3))
@settings(max_examples=300, deadline=None)
def test_any_bytes_instead_of_a_proof(chunks: list[bytes]) -> None:
    conversation = Conversation()
    conversation.send(startup({"user": "ann"}))
    for each in [*chunks, b""]:
        conversation.send(each)
    assert conversation.ended
    assert conversation.effects == []


@given(st.lists(st.one_of(ANY, FRAMED), max_size=6))
@settings(max_examples=300, deadline=None)
def test_any_messages(chunks: list[bytes]) -> None:
    conversation = Conversation()
    sign_in(conversation)
    for each in [*chunks, b""]:
        conversation.send(each)
    assert conversation.ended
    assert conversation.queries.running == {}


@given(st.lists(SENSIBLE, max_size=12), st.integers(1, 50))
@settings(max_examples=60, deadline=None)
def test_sensible_messages_in_any_order_and_in_pieces(chunks: list[bytes], size: int) -> None:
    """After a Sync the session is ready, whatever came before it; and the pieces in which bytes come mean nothing."""
    conversation = Conversation()
    sign_in(conversation)
    data = b"".join(chunks) + framed(b"S")
    sent = b"".join(conversation.send(data[at : at + size]) for at in range(0, len(data), size))
    assert lines(sent)[-1].startswith("ready")
    whole = Conversation()
    sign_in(whole)
    assert whole.send(data) == sent


@given(st.text(max_size=200))
@settings(max_examples=500, deadline=None)
def test_any_text_is_statements_or_an_error(sql: str) -> None:
    position = 0
    try:
        for each in statements(sql):
            command(sql, each)
    except SqlError as error:
        position = error.position
    assert 0 <= position <= len(sql) + 1


@given(st.one_of(st.none(), ANY), st.sampled_from([*BY_OID, *BY_ARRAY, 0, 705, 999_999]), st.sampled_from([0, 1]))
@settings(max_examples=2_000, deadline=None)
def test_any_bytes_are_a_value_or_an_error(data: bytes | None, oid: int, format: int) -> None:
    try:
        found = decode(data, oid, format)
    except SqlError:
        return
    assert "{}" in found.expression


def test_a_query_that_was_cancelled_is_ended_at_once_in_a_transaction_as_well() -> None:
    conversation = Conversation()
    sign_in(conversation)
    conversation.send(framed(b"Q", text("begin")))
    conversation.queries.cancelled = True
    data = parse("", "select * from range(9)") + bind("p", "") + framed(b"E", text("p") + bytes(4)) + framed(b"S")
    assert lines(conversation.send(data))[2:] == [
        "ERROR 57014: canceling statement due to user request",
        "ready, in a failed transaction",
    ]
    assert conversation.queries.running == {}


# Limits --------------------------------------------------------------------------------------------------------------


def test_the_beginning_is_bounded() -> None:
    conversation = Conversation()
    sent = conversation.send(struct.pack("!i", STARTUP_BYTES_MAX + 1))
    assert lines(sent) == ["FATAL 08P01: a message has 10001 bytes: it must have 4 to 10000"]
    many = Conversation()
    sent = many.send(startup({f"o{at}": "" for at in range(OPTIONS_MAX + 1)}))
    assert lines(sent) == ["FATAL 08P01: a client says at most 100 things at its beginning"]
    long = Conversation()
    long.send(startup({"user": "ann"}))
    assert b"it must have 4 to 10000" in long.send(b"p" + struct.pack("!i", 10_001))


def test_bytes_ahead_of_tls_are_refused() -> None:
    conversation = Conversation(tls=True)
    sent = conversation.send(struct.pack("!ii", 8, 80877103) + startup({"user": "ann"}))
    assert lines(sent) == ["FATAL 08P01: bytes came before TLS was agreed upon"]
    assert conversation.effects == []


@pytest.mark.parametrize(
    ("make", "told"),
    [
        (lambda at: parse(f"s{at}", "select 1"), "a connection has at most 1000 prepared statements"),
        (lambda at: bind(f"p{at}", ""), "a connection has at most 32 open portals"),
        (lambda at: framed(b"Q", text(f"savepoint s{at}")), "a transaction has at most 1000 savepoints"),
        (lambda at: framed(b"Q", text(f"set a.s{at} = 1")), "a session has at most 200 settings"),
    ],
)
def test_what_a_connection_keeps_is_bounded(make, told: str) -> None:  # type: ignore[no-untyped-def]
    conversation = Conversation()
    sign_in(conversation)
    conversation.send(framed(b"Q", text("begin")) + parse("", "select 1"))
    sent = conversation.send(b"".join(make(at) for at in range(1_001)))
    assert told in next(each for each in lines(sent) if each.startswith("ERROR"))


def test_a_statement_of_too_many_words() -> None:
    conversation = Conversation()
    sign_in(conversation)
    assert b"54000" in conversation.send(framed(b"Q", text("select 1" + ",1" * 200_000)))


def test_the_mechanism_must_be_one_that_was_offered() -> None:
    conversation = Conversation()
    conversation.send(startup({"user": "ann"}))
    assert b"invalid SASL" in conversation.send(sasl_initial(mechanism="PLAIN"))
