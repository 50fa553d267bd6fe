"""The read of one entity by itself: what it gives for every kind of state, and that nothing can be mistaken for it."""

from __future__ import annotations

from decimal import Decimal

import msgspec
import pytest

import styx
from styx import App, ConfigurationError, Context, Operator
from styx.errors import UnknownEntity
from styx.messages import Reply, ReplyError, Request
from styx.model.entity_read import read_function, reply_of_read, state_in
from styx.model.function_spec import READ_FUNCTION
from styx.model.limits import Limits
from styx.model.signature import NO_ARGUMENTS
from styx.testing.serial import SerialReference

plain = Operator("plain")


class Doc(msgspec.Struct):
    words: set[str]
    price: Decimal


class Book(msgspec.Struct):
    number: int


typed = Operator("typed", key_type=(int, str), state_type=Doc)


@plain.register
async def put(ctx: Context, value: object) -> None:
    await ctx.put(value)


@plain.register
async def call_read(ctx: Context) -> None:
    await ctx.call("plain", READ_FUNCTION, ctx.key)


app = App("reads", [plain, typed])


def reference() -> SerialReference:
    return SerialReference(app)


@pytest.mark.parametrize("value", [None, False, 0, "", [], {}, {"a": [1, b"x"]}, 2**63])
def test_a_state_is_the_result_even_if_it_is_nothing_much(value: object) -> None:
    serial = reference()
    serial.state["plain", "a"] = plain.encode_state(value)
    outcome = serial.run(1, 0, Request("r", "plain", "a", READ_FUNCTION, NO_ARGUMENTS))
    assert outcome.error is None
    assert outcome.result is not None
    assert msgspec.msgpack.decode(outcome.result) == value
    assert serial.state == {("plain", "a"): plain.encode_state(value)}


def test_typed_state_is_encoded_as_a_result_is_and_its_sets_are_sorted() -> None:
    serial = reference()
    words = {f"w{n}" for n in range(50)}
    serial.state["typed", (1, "x")] = typed.encode_state(Doc(words, Decimal("1.50")))
    outcome = serial.run(1, 0, Request("r", "typed", [1, "x"], READ_FUNCTION, NO_ARGUMENTS))
    assert outcome.result is not None
    assert msgspec.msgpack.decode(outcome.result) == {"words": sorted(words), "price": "1.50"}


def test_no_state() -> None:
    outcome = reference().run(1, 0, Request("r", "typed", [1, "x"], READ_FUNCTION, NO_ARGUMENTS))
    assert outcome.error == ("aborted", "UnknownEntity", "typed[(1, 'x')] has no state")


def test_no_state_but_perhaps_rows() -> None:
    shelf = Operator("shelf")
    shelf.table("books", Book, key="number")
    outcome = SerialReference(App("library", [shelf])).run(
        1, 0, Request("r", "shelf", "a", READ_FUNCTION, NO_ARGUMENTS)
    )
    assert outcome.error is not None
    assert "shelf['a'] has no state; its rows, if it has any, are read by table" in outcome.error[2]


def test_a_state_that_does_not_fit_its_type_names_the_entity() -> None:
    serial = reference()
    serial.state["typed", (1, "x")] = b"\x01"
    error = serial.run(1, 0, Request("r", "typed", [1, "x"], READ_FUNCTION, NO_ARGUMENTS)).error
    assert error is not None
    assert error[:2] == ("aborted", "UnsupportedValue")
    assert "typed[(1, 'x')]" in error[2]


@pytest.mark.parametrize("params", [b"\x91\x01", b"\x81\xa1a\x01", b"\xc0", b"", b"garbage"])
def test_arguments_are_refused(params: bytes) -> None:
    error = reference().run(1, 0, Request("r", "plain", "a", READ_FUNCTION, params)).error
    assert error is not None
    assert error[0] == "bad_arguments"


def test_no_function_can_have_its_name_or_call_it() -> None:
    async def other(ctx: Context) -> None: ...

    other.__name__ = READ_FUNCTION
    with pytest.raises(ConfigurationError, match="the engine's own"):
        plain.register(other)
    assert READ_FUNCTION not in plain.functions
    with pytest.raises(styx.StyxError, match="has no function '<read>'"):
        plain.function(READ_FUNCTION)
    error = reference().run(1, 0, Request("r", "plain", "a", "call_read", b"\x90")).error
    assert error is not None
    assert error[1] == "UnknownFunction"


def test_it_is_made_once_for_each_operator() -> None:
    assert read_function(plain) is read_function(plain) is not read_function(typed)


def test_an_exception_of_an_app_is_no_absence() -> None:
    """Only a read is looked at this way, and an abort of another type is none."""
    gone = Reply(None, ReplyError("UnknownEntity", "plain['a'] has no state", "aborted"), 5, 1, 0, "r")
    other = Reply(None, ReplyError("UnsupportedValue", "it does not fit", "aborted"), 5, 1, 0, "r")
    found = Reply({"n": 1}, None, 5, 1, 1, "r")
    assert reply_of_read(gone).error == ReplyError("UnknownEntity", "plain['a'] has no state", "unknown_entity")
    assert state_in(reply_of_read(gone)) is None
    assert state_in(reply_of_read(found)) == {"n": 1}
    with pytest.raises(styx.TransactionAborted, match="does not fit"):
        state_in(reply_of_read(other))
    assert UnknownEntity.code == "aborted"


def test_the_limit_of_values_holds_for_what_is_read() -> None:
    serial = SerialReference(app, Limits(value_bytes_max=100))
    serial.state["plain", "a"] = plain.encode_state("x" * 98)
    assert serial.run(1, 0, Request("r", "plain", "a", READ_FUNCTION, NO_ARGUMENTS)).error is None
