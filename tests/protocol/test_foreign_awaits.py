"""What a request does wrong costs only itself: nothing of it runs outside of the engine's guards."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any, NoReturn

import pytest

from styx import App, Context, Operator
from tests.protocol.deployment import Deployment

entity = Operator("entity")


class Proxy:
    """As web frameworks' context proxies do, it raises for any attribute where there is no request."""

    @property
    def context(self) -> NoReturn:
        raise RuntimeError("working outside of application context")


class LazyProxy:
    """It makes what it stands for when it is asked for its class, which `isinstance` does as well."""

    @property  # type: ignore[misc]
    def __class__(self) -> NoReturn:  # type: ignore[override]
        raise RuntimeError("settings are not configured")


class Yields:
    def __init__(self, foreign: object) -> None:
        self._foreign = foreign

    def __await__(self) -> Generator[Any, Any, None]:
        yield self._foreign


@entity.register
async def wait_for_a_proxy(ctx: Context) -> None:
    await Yields(Proxy())


@entity.register
async def wait_for_a_lazy_proxy(ctx: Context) -> None:
    await Yields(LazyProxy())


@entity.register
async def count(ctx: Context) -> int:
    number: int = await ctx.get(0) + 1
    await ctx.put(number)
    return number


@pytest.mark.parametrize("function", ["wait_for_a_proxy", "wait_for_a_lazy_proxy"])
def test_an_awaited_object_whose_attributes_raise_is_a_foreign_await(function: str) -> None:
    deployment = Deployment(App("proxies", [entity]), workers=1, slots=1)
    deployment.send("entity", "a", function)
    deployment.send("entity", "b", "count")
    deployment.run()
    error = deployment.reply(0).error
    assert error is not None
    assert error[1] == "NondeterministicFunction"
    deployment.check()
