"""Arguments from JSON to the function: the annotation decides, and a misfit names its parameter."""

from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import msgspec
import pytest

from styx.errors import BadArguments
from styx.gateway.arguments import ArgumentReader
from styx.model.signature import ARGUMENTS_MAX, Signature
from tests.gateway.fake_engine import Point, shelf


def read(function: str, body: bytes) -> Any:
    """What the function would be called with: through the gateway's encoding and the engine's decoding."""
    signature = shelf.functions[function].signature
    return signature.decode(ArgumentReader(signature).read(body))


TYPED = b'"AP8=", "2026-01-02T03:04:05Z", 1.10, {"x": 1}, {"1": 2}'


@pytest.mark.parametrize(
    "body",
    [
        b"[" + TYPED + b"]",
        b'{"counts": {"1": 2}, "point": {"x": 1}, "price": 1.10, "when": "2026-01-02T03:04:05Z", "raw": "AP8="}',
    ],
)
def test_types_arrive(body: bytes) -> None:
    positional, named = read("typed", body)
    expected = (b"\0\xff", datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC), Decimal("1.10"), Point(1), {1: 2})
    assert (tuple(positional) or tuple(named[n] for n in ("raw", "when", "price", "point", "counts"))) == expected


@pytest.mark.parametrize("number", [2**63, 2**64 - 1, -(2**63)])
def test_large_integers_arrive(number: int) -> None:
    assert read("echo", b"[%d]" % number) == ((number,), {})


def test_an_exact_decimal_of_any_length_arrives() -> None:
    digits = b"1." + b"123456789" * 20
    positional, _ = read("typed", b"[" + TYPED.replace(b"1.10", digits) + b"]")
    assert positional[2] == Decimal(digits.decode())


def test_variadic_arguments() -> None:
    assert read("gather", b"[1, 2, 3]") == ((1, 2, 3), {})
    with pytest.raises(BadArguments, match="'others'"):
        read("gather", b'[1, 2, "x"]')
    with pytest.raises(BadArguments, match=str(ARGUMENTS_MAX + 1)):
        read("gather", b"[" + b"1," * ARGUMENTS_MAX + b"1]")


def test_keyword_only_and_rest() -> None:
    assert read("options", b'{"name": "a", "loud": true, "x": 1}') == ([], {"name": "a", "loud": True, "x": 1})
    for body, why in [
        (b'["a"]', "takes"),
        (b"", "takes"),
        (b'{"name": "a"}', "lacks loud"),
        (b'{"name": "a", "loud": true, "ctx": 1}', "ctx"),
        (b'{"name": "a", "loud": true, "x": "y"}', "argument 'x'"),
    ]:
        with pytest.raises(BadArguments, match=why):
            read("options", body)


def test_an_error_of_the_apps_own_types_is_a_misfit() -> None:
    with pytest.raises(BadArguments, match="x is below zero"):
        read("typed", b"[" + TYPED.replace(b'"x": 1', b'"x": -1') + b"]")


def test_many_unknown_names_make_a_short_message() -> None:
    names = b",".join(b'"%d": 1' % number for number in range(1000))
    with pytest.raises(BadArguments) as caught:
        read("add", b'{"left": 1, ' + names + b"}")
    assert len(str(caught.value)) < 300


def test_a_positional_only_argument_left_out_before_one_given() -> None:
    async def function(ctx: Any, a: int = 1, b: int = 2, c: int = 3, /) -> None: ...

    signature = Signature("f", function)
    assert signature.decode(msgspec.msgpack.encode({"b": 5})) == ([1, 5], {})
    assert signature.decode(msgspec.msgpack.encode({})) == ([], {})
