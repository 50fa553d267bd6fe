"""Pydantic's models as state, parameters and results: embedded, over HTTP, and described; and that none is needed."""

from __future__ import annotations

import asyncio
import datetime
import subprocess
import sys
import uuid
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Any, Generic, Literal, TypeVar

import httpx
import msgspec
import pydantic
import pydantic.dataclasses
import pydantic.v1
import pytest
from openapi_spec_validator import OpenAPIV31SpecValidator

from styx import App, ConfigurationError, Context, Operator, RequestRejected, TransactionAborted
from styx.errors import UnsupportedValue
from styx.gateway.app import Gateway
from styx.gateway.openapi import openapi
from styx.testing import embedded_cluster
from styx.values.codec import TypedState

T = TypeVar("T")


class Line(pydantic.BaseModel):
    sku: str = pydantic.Field(min_length=1)
    price: Decimal
    count: int = pydantic.Field(default=1, gt=0)


class Order(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(extra="forbid")
    lines: list[Line] = []
    tags: set[str] = set()
    placed: datetime.datetime | None = None
    ident: uuid.UUID = uuid.UUID(int=7)
    where: Path = Path("/x")
    raw: bytes = b"\xff\x00"
    kind: Literal["a", "b"] = "a"

    @property
    def total(self) -> Decimal:
        return sum((line.price * line.count for line in self.lines), Decimal(0))


class Strict(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(strict=True, populate_by_name=True)
    amount: Decimal = pydantic.Field(alias="theAmount")
    days: tuple[datetime.date, ...] = ()


class Pair(pydantic.BaseModel, Generic[T]):
    one: T
    two: T


class Envelope(msgspec.Struct):
    orders: dict[str, Order]
    strict: Strict | None = None


@dataclass
class Wrapped:
    lines: list[Line]


orders = Operator("orders", state_type=Order)
envelopes = Operator("envelopes", state_type=Envelope)


@orders.register
async def place(ctx: Context, line: Line, more: list[Line] = [], tag: str | None = None) -> Order:  # noqa: B006
    """Adds lines."""
    order: Order = await ctx.get(Order())
    order.lines += [line, *more]
    if tag is not None:
        order.tags.add(tag)
    await ctx.put(order)
    return order


@orders.register
async def total(ctx: Context, strict: Strict | None = None, *, wrapped: Wrapped | None = None) -> Strict:
    found = await ctx.get()
    assert isinstance(found, Order)
    return Strict(theAmount=found.total + (strict.amount if strict else 0))


@orders.register
async def seal(ctx: Context) -> Pair[int]:
    order = await ctx.get(Order())
    sealed = await ctx.call(envelopes, "add", "e", (ctx.key, order))
    assert isinstance(sealed, Envelope), sealed
    assert isinstance(sealed.orders[ctx.key], Order)
    return Pair[int](one=1, two=len(sealed.orders))


@envelopes.register
async def add(ctx: Context, name: str, order: Order) -> Envelope:
    envelope: Envelope = await ctx.get(Envelope({}))
    envelope.orders[name] = order
    await ctx.put(envelope)
    return envelope


app = App("shop", [orders, envelopes])


def test_models_are_state_parameters_and_results(tmp_path: Path) -> None:
    async def run() -> None:
        async with embedded_cluster(app, tmp_path) as cluster:
            line = Line(sku="a", price=Decimal("1.50"), count=2)
            result = await cluster.call("orders", "o", "place", line, [{"sku": "b", "price": "2"}], "new")
            assert result["lines"][1] == {"sku": "b", "price": "2", "count": 1}
            state = cluster.entity("orders", "o")
            assert isinstance(state, Order)
            assert (state.total, state.tags, state.raw) == (Decimal("5.00"), {"new"}, b"\xff\x00")
            assert await cluster.call("orders", "o", "total", Strict(theAmount=Decimal(1))) == {
                "theAmount": "6.00",
                "days": [],
            }
            assert await cluster.call("orders", "o", "seal") == {"one": 1, "two": 1}
            await cluster.crash_and_recover()
            assert cluster.entity("orders", "o") == state
            assert cluster.entity("envelopes", "e") == Envelope({"o": state})
            await cluster.load(orders, [("loaded", Order(tags={"b", "a"}))])
            assert cluster.entity("orders", "loaded").tags == {"a", "b"}

    asyncio.run(run())


@pytest.mark.parametrize(
    ("function", "args", "told"),
    [
        ("place", ({"sku": "", "price": "x"},), "orders.place: argument 'line': sku: String should have at least 1"),
        ("place", ({"sku": "", "price": "x"},), "price: Input should be a valid decimal"),
        ("place", (1,), "argument 'line': Input should be a valid dictionary or instance of Line"),
        ("place", ({"sku": "a", "price": 1}, [{"sku": "b"}]), "argument 'more': price: Field required (in more[0])"),
        ("total", ({"theAmount": []},), "argument 'strict': theAmount: Decimal input should be"),
    ],
)
def test_what_does_not_fit_a_model_is_told_by_field(function: str, args: Any, told: str) -> None:
    async def run() -> None:
        async with embedded_cluster(app) as cluster:
            with pytest.raises(RequestRejected) as rejected:
                await cluster.call("orders", "o", function, *args)
            assert rejected.value.code == "bad_arguments"
            assert told in rejected.value.message
            assert "pydantic.dev" not in rejected.value.message

    asyncio.run(run())


def test_over_http_and_described() -> None:
    async def run() -> None:
        document = openapi(app)
        OpenAPIV31SpecValidator(document).validate()
        assert set(document["components"]["schemas"]) >= {"Order", "Line", "Strict", "Envelope", "Wrapped"}
        assert document["components"]["schemas"]["Line"]["properties"]["sku"]["minLength"] == 1
        async with embedded_cluster(app) as cluster:
            transport = httpx.ASGITransport(Gateway(cluster.engine))
            async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as http:
                url = "/v1/orders/o"
                answer = await http.post(f"{url}/place", json=[{"sku": "a", "price": "1.5"}])
                assert (answer.status_code, answer.json()["result"]["lines"][0]["price"]) == (200, "1.5")
                answer = await http.post(f"{url}/place", json={"line": {"sku": "a", "price": 2}, "tag": "t"})
                assert answer.json()["result"]["tags"] == ["t"]
                answer = await http.post(f"{url}/total", json={"strict": {"theAmount": "1"}, "wrapped": {"lines": []}})
                assert answer.json()["result"]["theAmount"] == "4.5"
                answer = await http.post(f"{url}/place", json=[{"sku": ""}])
                assert answer.status_code == 422
                assert "argument 'line': sku: String should have" in answer.json()["error"]["message"]

    asyncio.run(run())


class Private(pydantic.BaseModel):
    shown: int = 1
    hidden: int = pydantic.Field(default=1, exclude=True)
    _own: int = pydantic.PrivateAttr(default=0)


class Base(pydantic.BaseModel):
    n: int = 0


class Sub(Base):
    extra: int = 1


class Loose(pydantic.BaseModel):
    anything: Any = None


def test_state_that_a_model_would_lose_is_refused() -> None:
    private = Private()
    private._own = 5
    for model, value, told in [
        (Private, Private(hidden=2), "a int would come back as another one"),
        (Private, private, "would lose what is private or excluded"),
        (Base, Sub(), "a Sub would come back as a Base: declare Sub"),
        (list[Base], [Base(), Sub()], "a Sub would come back as a Base"),
        (Base, {"m": 1}, "Base has no field 'm'"),
        (Loose, Loose(anything={1, 2}), "a set would come back as a list"),
        (Loose, Loose(anything=Decimal(1)), "a Decimal would come back as a str"),
    ]:
        with pytest.raises(UnsupportedValue, match=told):
            TypedState(model).encode(value)
    typed = TypedState(Order)
    order = Order(lines=[Line(sku="x", price=Decimal("1.0"))], tags={"b", "a"})
    assert typed.encode(order) == typed.encode(order)


# Declarations --------------------------------------------------------------------------------------------------


class PlainClass:
    pass


class Old(pydantic.v1.BaseModel):
    n: int


class Arbitrary(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(arbitrary_types_allowed=True)
    inner: PlainClass


class Secret(pydantic.BaseModel):
    password: pydantic.SecretStr


class TwoNames(pydantic.BaseModel):
    n: int = pydantic.Field(validation_alias="in", serialization_alias="out")


@pydantic.dataclasses.dataclass
class PydanticData:
    n: int


class Holds(msgspec.Struct):
    inner: dict[str, list[PlainClass]]


REFUSED = [
    (
        PlainClass,
        "'PlainClass' is a plain class, which styx cannot convert: use msgspec.Struct, a dataclass or a pydantic",
    ),
    (list[PlainClass | None], "'PlainClass' is a plain class"),
    (Holds, "'PlainClass' is a plain class"),
    (Old, "'Old' is a pydantic model of version 1"),
    (Arbitrary, "pydantic model 'Arbitrary' cannot travel as data"),
    (Secret, "'password' is a secret"),
    (TwoNames, "'n' is written as 'out' and read as 'in'"),
    (PydanticData, "'PydanticData' is a dataclass of pydantic"),
    (Annotated[int, pydantic.Field(gt=0)], "FieldInfo of pydantic has no effect outside of a pydantic model"),
    (Order | int, "make it the field of a pydantic model"),
]


@pytest.mark.parametrize(("declared", "told"), REFUSED)
def test_what_could_only_fail_later_is_refused_where_it_is_declared(declared: Any, told: str) -> None:
    with pytest.raises(ConfigurationError, match=told) as refused:
        Operator("z", state_type=declared)
    assert "operator 'z': state_type" in str(refused.value)
    operator = Operator("z")

    async def f(ctx: Context, p: Any) -> None: ...

    f.__annotations__["p"] = declared
    operator.register(f)
    with pytest.raises(ConfigurationError, match=told) as refused:
        App("a", [operator])
    assert "z.f: arguments cannot be converted to 'p'" in str(refused.value)


def test_a_result_that_cannot_be_sent_is_refused_too() -> None:
    operator = Operator("z")

    @operator.register
    async def f(ctx: Context) -> list[PlainClass]:
        return []

    with pytest.raises(ConfigurationError, match=r"z\.f: the result's annotation: 'PlainClass' is a plain class"):
        App("a", [operator])


def test_a_model_where_none_is_declared_is_told_so() -> None:
    operator = Operator("z")

    @operator.register
    async def f(ctx: Context) -> None:
        await ctx.put(Base())

    async def run() -> None:
        async with embedded_cluster(App("a", [operator])) as cluster:
            with pytest.raises(
                TransactionAborted, match=r"z\['k'\]: Base\(n=0\) of type Base cannot be stored without"
            ):
                await cluster.call("z", "k", "f")

    asyncio.run(run())


@pytest.mark.slow
def test_pydantic_is_not_imported_by_who_does_not_use_it() -> None:
    script = (
        "import sys, styx, msgspec, styx.client.embedded, styx.gateway.app\n"
        "class S(msgspec.Struct):\n  x: int\n"
        "op = styx.Operator('a', state_type=S)\n"
        "async def f(ctx, s: S) -> S: ...\n"
        "op.register(f); styx.App('a', [op])\n"
        "assert 'pydantic' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", script], check=True)
