"""What an app's author is told of usual mistakes: what was wrong, where, and what to write instead."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

import styx
from styx import App, ConfigurationError, Context, Limits, Operator, RequestRejected
from styx.gateway.arguments import ArgumentReader
from styx.testing import embedded_cluster

plain = Operator("plain")
typed = Operator("typed", state_type=dict[str, int])
clients: list[Any] = []


class Grams(float):
    pass


class Name(str):
    pass


async def helper() -> None: ...


def deep(levels: int) -> list[Any]:
    value: list[Any] = []
    for _ in range(levels):
        value = [value]
    return value


def circle() -> list[Any]:
    value: list[Any] = []
    value.append(value)
    return value


VALUES: dict[str, Callable[[], Any]] = {
    "subclass": lambda: {"price": [1, Grams(1.5)]},
    "text": lambda: {"names": {"a": Name("b")}},
    "object": lambda: {"x": object()},
    "coroutine": lambda: {"later": helper()},
    "deep": lambda: deep(2_000),
    "circle": circle,
    "none": lambda: None,
}


@plain.register
async def store(ctx: Context, what: str) -> None:
    value = VALUES[what]()
    try:
        await ctx.put(value)
    finally:
        if what == "coroutine":
            value["later"].close()


@typed.register
async def store_typed(ctx: Context, what: str) -> None:
    await ctx.put(VALUES[what]())


@plain.register
async def give(ctx: Context, what: str) -> Any:
    value = VALUES[what]()
    clients.append(value)
    return value


@plain.register
async def groups(ctx: Context) -> None:
    async with asyncio.TaskGroup() as group:
        group.create_task(helper())


@plain.register
async def times_out(ctx: Context) -> None:
    async with asyncio.timeout(1):
        await helper()


@plain.register
async def asks_a_client(ctx: Context) -> None:
    await clients[-1].call("plain", "b", "store", "none")


@plain.register
async def calls_like_a_client(ctx: Context) -> None:
    await ctx.call(plain, "key", "store", ("none",))


@plain.register
async def gives_a_bare_argument(ctx: Context, argument: Any) -> None:
    ctx.call_async(plain, store, "key", argument)


@plain.register
async def named(ctx: Context, a: int, *, b: float = 1.0, c: str = "x") -> None: ...


@plain.register
async def reads(ctx: Context, text: str, more: str = "") -> None: ...


app = App("texts", [plain, typed])


def told(operator: str, function: str, *args: Any) -> tuple[str, str]:
    async def run() -> tuple[str, str]:
        async with embedded_cluster(app) as cluster:
            clients[:] = [cluster]
            reply = await cluster.request(operator, "k", function, *args)
            assert reply.error is not None
            return reply.error.type, reply.error.message

    return asyncio.run(run())


@pytest.mark.parametrize(
    ("operator", "function", "args", "kind", "texts"),
    [
        (
            "plain",
            "store",
            ("subclass",),
            "UnsupportedValue",
            ["plain['k']['price'][1]: 1.5 of type Grams", "float(…)"],
        ),
        ("plain", "store", ("text",), "UnsupportedValue", ["plain['k']['names']['a']: 'b' of type Name", "str(…)"]),
        ("plain", "store", ("object",), "UnsupportedValue", ["plain['k']['x']: <object object>", "state_type"]),
        ("plain", "store", ("coroutine",), "UnsupportedValue", ["plain['k']['later']", "an `await` is missing"]),
        ("plain", "store", ("deep",), "UnsupportedValue", ["plain['k']", "is nested too deeply, or contains itself"]),
        ("plain", "store", ("circle",), "UnsupportedValue", ["is nested too deeply, or contains itself"]),
        ("plain", "give", ("circle",), "UnsupportedValue", ["is nested too deeply, or contains itself"]),
        ("plain", "give", ("coroutine",), "UnsupportedValue", ["an `await` is missing: helper(…) gives a coroutine"]),
        (
            "typed",
            "store_typed",
            ("none",),
            "UnsupportedValue",
            ["typed['k']", "ctx.delete() removes a state", "| None"],
        ),
        (
            "plain",
            "groups",
            (),
            "NondeterministicFunction",
            [f"test_error_texts.py:{groups.__code__.co_firstlineno + 2} in groups awaits asyncio.taskgroups.TaskGroup"],
        ),
        (
            "plain",
            "calls_like_a_client",
            (),
            "UnknownFunction",
            ["has no function 'key'", "ctx.call(operator, function, key, params)"],
        ),
        ("plain", "gives_a_bare_argument", ("x",), "UnsupportedValue", ["got 'x': write ('x',)"]),
        ("plain", "gives_a_bare_argument", (5,), "UnsupportedValue", ["got 5: write (5,)"]),
        ("plain", "named", (1, 2.0, "y"), "BadArguments", ["(a: int, *, b: float = 1.0, c: str = 'x')"]),
    ],
)
@pytest.mark.filterwarnings("ignore:coroutine .* was never awaited:RuntimeWarning")
def test_a_mistake_is_told_with_what_to_do(
    operator: str, function: str, args: Any, kind: str, texts: list[str]
) -> None:
    found, message = told(operator, function, *args)
    assert found == kind
    for text in texts:
        assert text in message
    for value in clients:
        if isinstance(value, dict):
            value["later"].close()


def test_a_timeout_is_told_like_a_sleep() -> None:
    async def run() -> None:
        async with styx.embedded(app) as client:
            reply = await client.request("plain", "k", "times_out")
            assert reply.error is not None
            assert reply.error.type == "NondeterministicFunction"
            assert "in times_out awaits asyncio.timeouts.Timeout" in reply.error.message

    asyncio.run(run())


def test_a_client_inside_of_a_function_is_told_by_the_function_s_line() -> None:
    async def run() -> None:
        async with styx.embedded(app) as client:
            clients[:] = [client]
            reply = await client.request("plain", "k", "asks_a_client")
            assert reply.error is not None
            line = asks_a_client.__code__.co_firstlineno + 2
            assert f"test_error_texts.py:{line} in asks_a_client awaits styx.client." in reply.error.message
            assert "to call a function use ctx.call. The request has been sent" in reply.error.message

    asyncio.run(run())


def test_a_generator_is_no_function() -> None:
    operator = Operator("o")

    async def each(ctx: Context) -> Any:
        yield 1

    with pytest.raises(ConfigurationError, match=r"o\.each has a `yield`: .* return a list"):
        operator.register(each)


def test_limits_are_limits() -> None:
    with pytest.raises(ConfigurationError, match=r"limits is a styx\.Limits"):
        styx.embedded(app, limits={"in_flight_max": 5})  # type: ignore[arg-type]
    styx.embedded(app, limits=Limits())


@pytest.mark.parametrize("body", [b'["\\ud800"]', b'["a", "x\\udc00y"]', b'{"text": "\\ud800"}'])
def test_half_of_a_surrogate_pair_is_told_as_such(body: bytes) -> None:
    with pytest.raises(RequestRejected, match="half of a surrogate pair"):
        ArgumentReader(plain.functions["reads"].signature).read(body, 2**20)
