"""State types and conversions that changed between two starts: what the new ones do not read is refused, and what was
converted is stored as such.
"""

from __future__ import annotations

from typing import Any

import pytest

from styx.errors import ConfigurationError
from tests.embedded.app_files import LOCKED, Edited

pytestmark = pytest.mark.anyio
STRUCT = "class Account(msgspec.Struct):\n    {fields}\n"


@pytest.mark.parametrize("end", ["close", "crash"])
async def test_state_that_the_new_type_does_not_read(edited: Edited, end: str) -> None:
    put = "async def put(ctx: Context, **value: Any) -> None:\n    await ctx.put({type}(**value))\n"

    def app(declared: str, fields: str) -> Any:
        return edited.app(
            f"Operator('acc', state_type=Account{declared})",
            put.format(type="Account"),
            more=STRUCT.format(fields=fields.replace("; ", "\n    ")),
        )

    client = edited.open(app("", "balance: int"))
    async with client:
        for number in range(12):
            await client.engine.submit(_named(client, f"k{number}", balance=number), 30)
        if end == "crash":
            client.crash()
    with pytest.raises(ConfigurationError, match="12 of 12 stored entities do not fit") as refused:
        async with edited.open(app("", "cents: int; currency: str")):
            pass
    assert str(refused.value).count("acc['k") == 10
    migrate = ", migrate=lambda old: {'cents': 100 * old['balance'], 'currency': 'EUR'}"
    client = edited.open(app(migrate, "cents: int; currency: str"))
    async with client:
        assert client.entity("acc", "k3").cents == 300
        client.crash()
    # It is stored as the new type has it, or will be, so that nothing needs to be converted any more.
    async with edited.open(app("", "cents: int; currency: str")) as client:
        assert client.entity("acc", "k3").cents == 300


@pytest.mark.parametrize("end", ["close", "crash"])
async def test_what_was_converted_is_stored_before_the_function_goes(edited: Edited, end: str) -> None:
    """By an app whose code cannot be kept, so that nobody could convert it any more."""
    put = "async def put(ctx: Context, value: int) -> None:\n    await ctx.put({'n': value})\n"
    async with edited.open(edited.app(functions=put)) as client:
        await client.call("acc", "k", "put", 5)
    typed = LOCKED + "class Account(msgspec.Struct):\n    count: int\n"
    get = "async def get(ctx: Context) -> Any:\n    return lock.locked() or (await ctx.get()).count\n"
    migrate = ", migrate=lambda old: {'count': old['n']}"
    client = edited.open(edited.app(f"Operator('acc', state_type=Account{migrate})", get, more=typed))
    async with client:
        assert client.entity("acc", "k").count == 5
        assert not client.engine.coordinator.unstored
        if end == "crash":
            epoch = client.engine.coordinator.epoch
            await client.engine._until(lambda: client.engine._stored(epoch), 60)
            client.crash()
    async with edited.open(edited.app("Operator('acc', state_type=Account)", get, more=typed)) as client:
        assert await client.call("acc", "k", "get") == 5


@pytest.mark.parametrize("between", [False, True])
async def test_code_from_before_a_conversion_is_found(edited: Edited, between: bool) -> None:
    """It never named a type, and would read anything; also after a version that needs no `migrate=` any more."""
    functions = "async def put(ctx: Context, value: int) -> None:\n    await ctx.put({'balance': value})\n"
    types = "class Account(msgspec.Struct):\n    cents: int\n"

    def app(declared: str) -> Any:
        return edited.app(f"Operator('acc'{declared})", functions, more=types)

    converting = ", state_type=Account, migrate=lambda old: {'cents': 100 * old['balance']}"
    async with edited.open(app("")) as client:
        await client.call("acc", "k", "put", 5)
    async with edited.open(app(converting)) as client:
        assert client.entity("acc", "k").cents == 500
    last = ", state_type=Account" if between else converting
    async with edited.open(app(last)):
        pass
    with pytest.raises(
        ConfigurationError, match=r"'acc' has 1 entity, 'k' for example, which a migrate= has converted"
    ):
        async with edited.open(app("")):
            pass
    async with edited.open(app(last)) as client:
        assert client.entity("acc", "k").cents == 500, "nothing was changed"
    back = ", state_type=dict[str, int], migrate=lambda old: old"
    async with edited.open(app(back)) as client:
        assert client.entity("acc", "k") == {"cents": 500}, "whoever says so may read it as it is"


async def test_a_type_that_was_named_and_is_not_any_more(edited: Edited) -> None:
    """Nothing was converted: plain values are what was stored."""
    types = "class Account(msgspec.Struct):\n    balance: int\n"
    functions = "async def put(ctx: Context, value: int) -> None:\n    await ctx.put({'balance': value})\n"
    async with edited.open(edited.app("Operator('acc')", functions)) as client:
        await client.call("acc", "k", "put", 5)
    typed = "Operator('acc', state_type=Account, migrate=lambda old: {'balance': 0})"
    async with edited.open(edited.app(typed, functions, more=types)) as client:
        assert client.entity("acc", "k").balance == 5
    async with edited.open(edited.app("Operator('acc')", functions)) as client:
        assert client.entity("acc", "k") == {"balance": 5}


def _named(client: Any, key: str, **arguments: Any) -> Any:
    """A request with arguments by name, as the gateway sends them."""
    import msgspec

    return client.engine.maker.make("acc", key, "put", msgspec.msgpack.encode(arguments))
