"""A request is made once: its key checked, its slot found, its record encoded and within the limit."""

from __future__ import annotations

from itertools import islice
from typing import Any

import pytest

from styx import App, Operator
from styx.errors import BadArguments, BadKey, RequestRejected
from styx.messages import decode_request
from styx.model.partitioning import KeySpace
from styx.model.request import AppRouter, RequestMaker, encode_arguments, request_ids
from tests.plain_form import plain_form

shelf = Operator("shelf")
paired = Operator("paired", key_type=(int, str))
app = App("shop", operators=[shelf, paired])


def maker(bytes_max: int = 1_000) -> RequestMaker:
    return RequestMaker(AppRouter(app, 16), bytes_max, reply_to=3)


def test_what_is_made() -> None:
    made = maker().make("paired", [1, "x"], "take", encode_arguments((5,)), "once", "mine")
    assert (made.request_id, made.repeatable) == ("mine", True)
    assert made.slot == paired.slot_of((1, "x"), 16)
    request = decode_request(made.payload)
    assert (request.request_id, request.operator, request.key, request.function) == ("mine", "paired", [1, "x"], "take")
    assert (request.params, request.idempotency_key, request.reply_to) == (b"\x91\x05", "once", 3)


def test_each_has_an_id_of_its_own() -> None:
    making = maker()
    ids = [making.make("shelf", "a", "f", b"\x90").request_id for _ in range(3)]
    assert len({*ids, *islice(request_ids(), 3)}) == 6
    assert not making.make("shelf", "a", "f", b"\x90").repeatable


@plain_form
def test_a_key_is_checked_for_a_name_and_taken_as_checked_for_an_operator(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(BadKey, match="has keys of type str"):
        maker().make("shelf", 1, "f", b"\x90")
    checks: list[Any] = []

    def check(_: KeySpace, key: Any) -> Any:
        checks.append(key)
        return key

    monkeypatch.setattr(KeySpace, "check", check)
    assert maker().make(shelf, "a", "f", b"\x90").slot == maker().make("shelf", "a", "f", b"\x90").slot
    assert checks == ["a"]


def test_an_operator_that_the_app_does_not_have() -> None:
    assert maker().make("nothing", "a", "f", b"\x90").slot == 0


@pytest.mark.parametrize("key", ["\ud800", 2**70, object()])
def test_what_cannot_be_encoded(key: Any) -> None:
    with pytest.raises(BadArguments, match="the request cannot be encoded"):
        maker().make("nothing", key, "f", b"\x90")


def test_what_is_too_large() -> None:
    size = len(maker().make("shelf", "a", "f", b"\x90", request_id="mine").payload)
    assert maker(size).make("shelf", "a", "f", b"\x90", request_id="mine").slot < 16
    with pytest.raises(RequestRejected, match=f"too_large: the request has {size} bytes; the limit is {size - 1}"):
        maker(size - 1).make("shelf", "a", "f", b"\x90", request_id="mine")


@pytest.mark.parametrize(("args", "data"), [((), b"\x90"), ((1, "a"), b"\x92\x01\xa1a"), ({"n": 1}, b"\x81\xa1n\x01")])
def test_arguments(args: Any, data: bytes) -> None:
    assert encode_arguments(args) == data


def test_arguments_that_cannot_be_encoded_are_named() -> None:
    with pytest.raises(BadArguments, match=r"^shelf\.f: the arguments cannot be encoded"):
        encode_arguments((object(),), "shelf.f: the arguments")
