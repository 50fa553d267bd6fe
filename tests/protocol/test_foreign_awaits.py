"""What a request does wrong costs only itself: nothing of it runs outside of the engine's guards."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any, NoReturn

from styx import App, Context, Operator
from tests.protocol.deployment import Deployment

entity = Operator("entity")


class Proxy:
    """As web frameworks' context proxies do, it raises for any attribute where there is no request."""

    @property
    def context(self) -> NoReturn:
        raise RuntimeError("working outside of application context")


class YieldsProxy:
    def __await__(self) -> Generator[Any, Any, None]:
        yield Proxy()


@entity.register
async def wait_for_a_proxy(ctx: Context) -> None:
    await YieldsProxy()


@entity.register
async def count(ctx: Context) -> int:
    number: int = await ctx.get(0) + 1
    await ctx.put(number)
    return number


def test_an_awaited_object_whose_attributes_raise_is_a_foreign_await() -> None:
    deployment = Deployment(App("proxies", [entity]), workers=1, slots=1)
    deployment.send("entity", "a", "wait_for_a_proxy")
    deployment.send("entity", "b", "count")
    deployment.run()
    error = deployment.reply(0).error
    assert error is not None
    assert error[1] == "NondeterministicFunction"
    deployment.check()
