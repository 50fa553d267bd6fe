"""One way to name an entity and call its functions, for contexts and all clients; results as functions declare them."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import pydantic
import pytest

import styx
from styx import App, Context, Operator, RequestRejected, TransactionAborted
from styx.client.typed_results import typed_result
from styx.errors import BadArguments
from styx.model.entity_handle import EntityReference
from styx.testing import embedded_cluster

AccountContext = Context[str, Decimal]
account = Operator("account", state_type=Decimal)


@dataclass
class Receipt:
    total: Decimal
    by_day: dict[int, Decimal]


class Statement(pydantic.BaseModel):
    balance: Decimal


@account.register
async def credit(ctx: AccountContext, amount: Decimal, note: str = "") -> Decimal:
    total = await ctx.get(Decimal(0)) + amount
    await ctx.put(total)
    return total


@account.register
async def receipt(ctx: AccountContext) -> Receipt:
    return Receipt(await ctx.get(Decimal(0)), {1: Decimal("0.5")})


@account.register
async def statement(ctx: AccountContext) -> Statement:
    return Statement(balance=await ctx.get(Decimal(0)))


@account.register
async def wishful(ctx: AccountContext, anything: Any) -> int:
    return anything  # type: ignore[no-any-return]


@account.register
async def by_name_only(ctx: AccountContext, *, amount: int) -> int:
    return amount


@account.register
async def transfer(ctx: AccountContext, to: str, amount: Decimal) -> Decimal:
    own = await ctx.at(account, ctx.key).call(credit, -amount)
    other = await ctx.at(account[to]).call(credit, amount=amount, note="x")
    ctx.at(account[to]).call_async(credit, Decimal(1))
    ctx.at("account", to).call_async("credit", Decimal(1))
    return own + other


@account.register
async def gives_a_wrong_name(ctx: AccountContext) -> None:
    try:
        await ctx.at(account, "b").call(credit, sum=5)  # type: ignore[call-overload]
    except Exception:  # noqa: BLE001 - as careless as can be
        pass


app = App("bank", [account])


def test_contexts_and_clients_name_entities_alike() -> None:
    async def run() -> None:
        async with embedded_cluster(app) as cluster:
            assert await cluster.at(account, "a").call(credit, Decimal("10.50")) == Decimal("10.50")
            assert await cluster.at(account["a"]).call(transfer, "b", amount=Decimal(4)) == Decimal("10.50")
            assert await cluster.at("account", "b").call("credit", 0) == "6"
            reply = await cluster.at(account["b"], timeout=5, idempotency_key="k").request(credit, Decimal(1))
            assert reply.unwrap() == "7"
            assert await cluster.at(account["b"], idempotency_key="k").call(credit, Decimal(1)) == Decimal(7)
            with pytest.raises(
                TransactionAborted, match=r"credit: .*unexpected keyword argument 'sum'|missing a required"
            ):
                await cluster.at(account["a"]).call(gives_a_wrong_name)
            with pytest.raises(BadArguments, match="by_name_only: amount can be given by name only"):
                await cluster.at(account["a"]).call(by_name_only, amount=1)
            with pytest.raises(BadArguments, match="if the function itself is given"):
                await cluster.at(account["a"]).call("credit", amount=1)  # type: ignore[call-overload]
            with pytest.raises(RequestRejected, match="bad_arguments"):
                await cluster.at(account, 5).call(credit, Decimal(1))  # type: ignore[misc]

    asyncio.run(run())
    assert account["x"] == EntityReference(account, "x")


def test_results_are_what_the_function_declares_if_it_is_given_itself() -> None:
    async def run() -> None:
        async with embedded_cluster(app) as cluster:
            await cluster.call(account, "a", credit, Decimal("1.50"))
            assert await cluster.call(account, "a", receipt) == Receipt(Decimal("1.50"), {1: Decimal("0.5")})
            assert await cluster.call(account, "a", statement) == Statement(balance=Decimal("1.50"))
            assert await cluster.call(account, "a", credit, amount=Decimal(1)) == Decimal("2.50")
            assert await cluster.call("account", "a", "receipt") == {"total": "2.50", "by_day": {1: "0.5"}}
            for value in (None, "text", [1]):
                assert await cluster.call(account, "a", wishful, value) == value

    asyncio.run(run())


def test_a_blocking_client_does_the_same() -> None:
    with styx.embedded_sync(app) as client:
        assert client.call(account, "a", credit, Decimal("1.50")) == Decimal("1.50")
        assert client.at(account["a"]).call(credit, Decimal(1)) == Decimal("2.50")
        assert client.at(account, "a").call("credit", 0) == "2.50"


def test_what_came_as_json_has_other_keys() -> None:
    assert typed_result(receipt, {"total": "1", "by_day": {"1": "2"}}) == Receipt(Decimal(1), {1: Decimal(2)})
    assert typed_result("receipt", {"total": "1"}) == {"total": "1"}


def test_brackets_are_for_type_checkers() -> None:
    assert Context[str, int].__origin__ is Context  # type: ignore[attr-defined]
    assert Operator[str, int].__origin__ is Operator  # type: ignore[attr-defined]
