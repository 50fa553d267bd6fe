"""Arguments from bytes to a function: converted by annotation, each time anew, and a misfit names its parameter."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import msgspec
import pytest

from styx.errors import BadArguments, ConfigurationError
from styx.model.signature import ARGUMENTS_MAX, NO_ARGUMENTS, Signature
from styx.values.codec import encode_any, encode_strict


class Point(msgspec.Struct):
    x: int
    tags: list[str] = []


class Other(msgspec.Struct):
    y: int


async def typed(ctx: object, amount: int, price: Decimal, point: Point, when: datetime | None = None) -> None: ...


async def plain(ctx: object, a: Any, b: Any = 2) -> None: ...


async def options(ctx: object, name: str, /, *others: int, loud: bool = False, **rest: int) -> None: ...


async def demanding(ctx: object, *, loud: bool) -> None: ...


def decode(function: Any, arguments: Any) -> Any:
    return Signature(f"o.{function.__name__}", function).decode(encode_any(arguments, "arguments"))


def misfit(function: Any, arguments: Any) -> str:
    with pytest.raises(BadArguments) as raised:
        decode(function, arguments)
    return str(raised.value)


def test_positional_arguments_are_converted() -> None:
    when = datetime(2026, 1, 2, tzinfo=UTC)
    assert decode(typed, [1, Decimal("2.50"), {"x": 3}, when]) == ((1, Decimal("2.50"), Point(3), when), {})


def test_named_arguments_are_converted() -> None:
    named = {"amount": 1, "price": "2.5", "point": Point(3, ["a"])}
    assert decode(typed, named) == ([], {"amount": 1, "price": Decimal("2.5"), "point": Point(3, ["a"])})


def test_arguments_without_annotations_are_as_sent() -> None:
    assert decode(plain, [[1, {"a": b"b"}], None]) == (([1, {"a": b"b"}], None), {})
    moment = datetime(2026, 1, 2, tzinfo=UTC)
    data = encode_strict([moment, moment])
    assert Signature("o.plain", plain).decode(data) == ((moment, moment), {}), "also what state can hold"


def test_every_execution_gets_its_own_copy() -> None:
    signature = Signature("o.plain", plain)
    data = encode_strict([[1], {}])
    (first, _), _ = signature.decode(data)
    first.append(2)
    assert signature.decode(data) == (([1], {}), {})


def test_variadic_positional_only_and_other_parameters() -> None:
    assert decode(options, ["a", 1, 2]) == (("a", 1, 2), {})
    assert decode(options, {"name": "a", "loud": True, "x": 1}) == (["a"], {"loud": True, "x": 1})
    assert "argument 'others'" in misfit(options, ["a", 1, "2"])
    assert "argument 'x'" in misfit(options, {"name": "a", "x": "1"})


# Misfits -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["1", "2", {"x": 3}], "o.typed: argument 'amount': Expected `int`, got `str`"),
        ([1, "much", {"x": 3}], "argument 'price'"),
        ([1, "2", {"x": "3"}], "argument 'point': Expected `int`, got `str` (in point.x)"),
        ([1, "2", {"x": 3, "tags": ["a", 5]}], "(in point.tags[1])"),
        ([1, "2", {}], "argument 'point': Object missing required field `x`"),
        ([1, "2"], "o.typed takes (amount: int, price: decimal.Decimal, "),
        ([1, "2", {"x": 3}, None, 5], "got 5 positional argument(s)"),
        ({"amount": 1}, "the request lacks price, point"),
        ({"amount": 1, "price": "2", "point": {"x": 3}, "amont": 5}, "the request also names 'amont'"),
        ({"amount": "1", "price": "2", "point": {"x": 3}}, "argument 'amount'"),
        ({"ctx": 1, "amount": 1, "price": "2", "point": {"x": 3}}, "also names 'ctx'"),
        ({1: 2}, "not valid msgpack"),
        ("text", "expected an array or a map"),
        (None, "expected an array or a map"),
    ],
)
def test_a_misfit_names_its_parameter(arguments: Any, words: str) -> None:
    assert words in misfit(typed, arguments)


def test_a_keyword_only_parameter_cannot_be_left_to_its_place() -> None:
    assert "got 1 positional argument(s)" in misfit(demanding, [True])
    assert decode(demanding, {"loud": True}) == ([], {"loud": True})


@pytest.mark.parametrize(
    "data", [b"", b"\xc1", b"\x91", b"\x92\x01", b"\x91\x01\x01", b"\x81\xa1a", b"\xdd", b"\xdc\0"]
)
def test_garbage_is_a_misfit_and_nothing_else(data: bytes) -> None:
    with pytest.raises(BadArguments):
        Signature("o.plain", plain).decode(data)


def test_what_is_nested_without_end_is_a_misfit() -> None:
    with pytest.raises(BadArguments):
        Signature("o.plain", plain).decode(b"\x91" * 100_000)


def test_the_number_of_arguments_is_bounded() -> None:
    assert decode(options, ["a", *range(ARGUMENTS_MAX - 1)])[0][-1] == ARGUMENTS_MAX - 2
    assert f"got {ARGUMENTS_MAX + 1} positional" in misfit(options, ["a", *range(ARGUMENTS_MAX)])
    many = {str(n): n for n in range(ARGUMENTS_MAX)}
    assert f"at most {ARGUMENTS_MAX} are taken" in misfit(options, {"name": "a", **many})
    claims_4_billion = b"\xdd\xff\xff\xff\xff"
    with pytest.raises(BadArguments):
        Signature("o.options", options).decode(claims_4_billion)


def test_no_arguments() -> None:
    assert Signature("o.options", demanding).parameters[0].name == "loud"
    assert msgspec.msgpack.decode(NO_ARGUMENTS) == []


# Declarations --------------------------------------------------------------------------------------------------


def test_an_annotation_may_name_what_only_the_enclosing_function_knows() -> None:
    class Local(msgspec.Struct):
        x: int

    async def function(ctx: object, point: Local) -> None:
        assert isinstance(point, Local)  # the annotation alone would not keep the name

    assert decode(function, [{"x": 1}]) == ((Local(1),), {})


def test_an_annotation_of_a_decorated_function_means_what_it_means_where_that_was_written() -> None:
    elsewhere: dict[str, Any] = {}
    exec(  # noqa: S102 - a decorator of a module that knows nothing of `Point`
        "import functools\n"
        "def traced(function):\n"
        "    @functools.wraps(function)\n"
        "    async def inner(*args):\n"
        "        return await function(*args)\n"
        "    return inner\n",
        elsewhere,
    )

    async def function(ctx: object, point: Point) -> None: ...

    assert decode(elsewhere["traced"](function), [{"x": 1}]) == ((Point(1),), {})


def test_an_annotation_that_cannot_be_resolved_says_what_to_do() -> None:
    async def function(ctx: object, point: Missing) -> None:  # type: ignore[name-defined]  # noqa: F821
        ...

    with pytest.raises(ConfigurationError, match=r"o.function: the annotation 'Missing' .* outside of TYPE_CHECKING"):
        Signature("o.function", function)


def test_an_annotation_that_nothing_can_be_converted_to_is_refused() -> None:
    async def function(ctx: object, kind: Point | Other) -> None: ...  # nothing tells them apart

    with pytest.raises(ConfigurationError, match="cannot be converted to 'kind'"):
        Signature("o.function", function)
