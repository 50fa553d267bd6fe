"""Calls that were given for later, against the version of the app that would make them."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from styx import App, Context, Limits, Operator
from styx.model.agenda import AgendaEntry, agenda_of, encode_entry, entry_key
from styx.schema.state_check import check_tables
from styx.schema.state_findings import StateFindings


class Order(msgspec.Struct):
    """An argument."""

    amount: int
    currency: str


def version(key_type: Any = str, function: str = "send", how: str = "two") -> App:
    """An app whose `order` entities have given calls of `mail.send`."""
    mail, order = Operator("mail", key_type=key_type), Operator("order")

    async def two(ctx: Context, text: str, copies: int = 1) -> None: ...

    async def more(ctx: Context, text: str, copies: int, urgent: bool) -> None: ...

    async def other(ctx: Context, text: int) -> None: ...

    async def typed(ctx: Context, order: Order, copies: int) -> None: ...

    chosen: Any = {"two": two, "more": more, "other": other, "typed": typed}[how]
    chosen.__name__ = function
    mail.register(chosen)
    return App("shop", [mail, order])


def checked(app: App, *params: Any, n: int = 1, key: Any = "ada", operator: str = "mail") -> StateFindings:
    entry = AgendaEntry(1, "id", 1, operator, "send", key, msgspec.msgpack.encode(params), 5, 1)
    agenda = {entry_key("o", f"{number:04d}"): encode_entry(entry) for number in range(n)}
    return check_tables(app, 1, Limits(), {0: {agenda_of("order"): agenda}})


def test_calls_that_can_be_made_fit() -> None:
    assert checked(version(), "hello", 2).refusal() is None
    assert checked(version(), "hello").refusal() is None
    assert checked(version(key_type=(str, int)), "hello", key=["ada", 1]).refusal() is None


@pytest.mark.parametrize(
    ("app", "params", "words"),
    [
        (version(function="post"), ("hello",), "it calls mail.send later, which the new version does not have"),
        (
            version(key_type=int),
            ("hello",),
            "its key does not fit the new version: operator 'mail' has keys of type int",
        ),
        (version(key_type=(str, str)), ("hello",), "its key does not fit the new version"),
        (version(how="more"), ("hello", 2), "its arguments do not fit the new version"),
        (version(how="other"), ("hello",), "its arguments do not fit the new version"),
        (version(how="typed"), ({"amount": 5}, 1), "its arguments do not fit the new version"),
        (version(), (), "its arguments do not fit the new version"),
        (version(), ("a", 1, 2), "its arguments do not fit the new version"),
    ],
)
def test_calls_that_cannot_be_made_are_told_by_name(app: App, params: tuple[Any, ...], words: str) -> None:
    found = checked(app, *params)
    refusal = found.refusal()
    assert refusal is not None
    assert words in refusal
    assert refusal.startswith(
        "1 of 1 stored entities and calls for later do not fit the new version:\n  order/<agenda>"
    )
    assert refusal.splitlines()[-1].startswith("Calls for later are made by the version that runs when they are due.")
    assert "Give every new field" not in refusal
    assert "column" not in refusal


def test_an_operator_that_is_gone() -> None:
    assert "it calls post.send later, which the new version does not have" in str(
        checked(version(), "hello", operator="post").refusal()
    )


def test_the_first_ten_are_told_of_and_all_are_counted() -> None:
    refusal = str(checked(version(function="post"), "hello", n=1234).refusal())
    assert refusal.startswith("1,234 of 1,234 stored entities and calls for later do not fit")
    assert refusal.count("it calls mail.send later") == 10
    assert "… and 1,224 more" in refusal
