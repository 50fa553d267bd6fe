"""Errors as replies carry them: a name, a message, a code; whatever the exception does when it is asked."""

from __future__ import annotations

import importlib
import pkgutil
from typing import Any

import pytest

import styx
from styx import errors
from styx.errors import (
    MESSAGE_CHARS_MAX,
    TYPE_CHARS_MAX,
    BadKey,
    ContextClosed,
    InTransactionError,
    NotSent,
    OutcomeUnknown,
    RequestRejected,
    TransactionAborted,
    code_of,
    describe,
)
from styx.messages import REJECTION_CODES


class InsufficientFunds(Exception):
    """The usual error of an app."""


class Hostile(Exception):
    def __init__(self, raised: BaseException | None = None, text: Any = None) -> None:
        super().__init__()
        self.raised = raised
        self.text = text

    def __str__(self) -> Any:
        if self.raised is not None:
            raise self.raised
        return self.text


@pytest.mark.parametrize(
    ("error", "described"),
    [
        (InsufficientFunds("alice cannot pay 5"), ("InsufficientFunds", "alice cannot pay 5")),
        (InsufficientFunds(), ("InsufficientFunds", "")),
        (KeyError("no account alice"), ("KeyError", "no account alice")),
        (KeyError("a", "b"), ("KeyError", "('a', 'b')")),
        (SystemExit(3), ("SystemExit", "3")),
        (AssertionError(), ("AssertionError", "")),
    ],
)
def test_an_exception_is_its_class_and_its_text(error: BaseException, described: tuple[str, str]) -> None:
    assert describe(error) == described


@pytest.mark.parametrize(
    "error",
    [
        Hostile(RuntimeError("no")),
        Hostile(SystemExit()),
        Hostile(KeyboardInterrupt()),
        Hostile(text=5),
        Hostile(text=None),
        InsufficientFunds("\ud800"),
        KeyError(Hostile(RuntimeError("no"))),
    ],
)
def test_an_exception_that_cannot_be_printed_is_described_all_the_same(error: BaseException) -> None:
    name, message = describe(error)
    assert name == type(error).__name__
    assert message == "<the exception's message could not be printed>"


class Odd(str):
    """Text that is none: msgpack would refuse it."""

    def encode(self, *args: Any, **kwargs: Any) -> bytes:
        return b""


def _named(name: Any) -> BaseException:
    class Meta(type):
        @property
        def __name__(cls) -> Any:  # type: ignore[override]
            if isinstance(name, BaseException):
                raise name
            return name

    class Odder(Exception, metaclass=Meta):
        pass

    return Odder("text")


@pytest.mark.parametrize("name", [RuntimeError("no name"), KeyboardInterrupt(), 5, None, "\ud800"])
def test_an_exception_whose_class_has_no_name_is_described_all_the_same(name: Any) -> None:
    assert describe(_named(name)) == ("<unnamed exception>", "text")


def test_a_long_name_is_cut() -> None:
    assert describe(type("E" * TYPE_CHARS_MAX, (Exception,), {})())[0] == "E" * TYPE_CHARS_MAX
    assert describe(type("E" * 3_000_000, (Exception,), {})())[0] == "E" * TYPE_CHARS_MAX + "…"


def test_a_description_is_of_plain_text() -> None:
    described = describe(_named(Odd("A"))), describe(Hostile(text=Odd("b")))
    assert [[type(each) for each in pair] for pair in described] == [[str, str], [str, str]]


def test_a_long_message_is_cut() -> None:
    assert describe(ValueError("x" * MESSAGE_CHARS_MAX))[1] == "x" * MESSAGE_CHARS_MAX
    assert describe(ValueError("x" * (MESSAGE_CHARS_MAX + 1)))[1] == "x" * MESSAGE_CHARS_MAX + "…"


def test_whatever_an_app_raises_is_an_abort() -> None:
    assert code_of(InsufficientFunds()) == "aborted"
    assert code_of(BadKey()) == "bad_arguments"
    assert code_of(ContextClosed()) == "aborted"


def test_every_code_of_the_engine_is_one_that_clients_know() -> None:
    found = [value for value in vars(errors).values() if isinstance(value, type)]
    codes = {error.code for error in found if issubclass(error, InTransactionError)}
    assert codes <= REJECTION_CODES | {"aborted"}


def _all_below(kind: type) -> set[type]:
    return {kind}.union(*map(_all_below, kind.__subclasses__()))


def test_no_error_says_both_that_nothing_happened_and_that_nobody_knows() -> None:
    for module in pkgutil.walk_packages(styx.__path__, "styx."):
        if "__main__" not in module.name and "._compiled" not in module.name:
            importlib.import_module(module.name)
    assert not _all_below(RequestRejected) & (_all_below(OutcomeUnknown) | _all_below(TimeoutError))
    assert {error for error in _all_below(RequestRejected) if issubclass(error, OSError)} == {NotSent}
    assert _all_below(OutcomeUnknown) == {OutcomeUnknown}
    assert "unknown" not in REJECTION_CODES


def test_what_is_said_of_an_unknown_outcome() -> None:
    unknown = OutcomeUnknown("the disk is full", "a-1")
    assert isinstance(unknown, ConnectionError)
    assert (unknown.reason, unknown.request_id) == ("the disk is full", "a-1")
    assert str(unknown).endswith("repeat it only with the same idempotency key")
    assert str(OutcomeUnknown(str(unknown))) == str(unknown)  # as one that came through a gateway
    not_sent = NotSent("nobody is there")
    assert isinstance(not_sent, ConnectionError)
    assert (not_sent.code, not_sent.message) == ("unavailable", "nobody is there")


def test_what_clients_catch() -> None:
    aborted, rejected = TransactionAborted("Short", "no money"), RequestRejected("too_large", "2 MiB")
    assert (aborted.type, aborted.message, str(aborted)) == ("Short", "no money", "Short: no money")
    assert str(TransactionAborted("Short", "")) == "Short"
    assert (rejected.code, rejected.message, str(rejected)) == ("too_large", "2 MiB", "too_large: 2 MiB")
    assert isinstance(aborted, styx.StyxError)
    assert isinstance(rejected, styx.StyxError)
