"""A reference to other entities that comes, changes or goes between two starts: rows without a parent refuse it, and
its entries are those of the rows, however the run before has ended.
"""

from __future__ import annotations

import pytest

from proof.link_steps import check_links
from styx import App
from styx.client.embedded import EmbeddedClient
from styx.errors import ConfigurationError, TransactionAborted
from styx.state.table import NEWEST
from tests.embedded.app_files import Edited

pytestmark = pytest.mark.anyio
ENDS = ["close", "crash"]
REFERS = ", references=[Ref('product', product{on_delete})]"
KEYS = [f"c{number}" for number in range(12)]


def app_of(edited: Edited, more: str = "", *, name: str = "items") -> App:
    return edited.source(
        "from styx import Ref\n"
        "class Row(msgspec.Struct):\n    number: int\n    product: int | None = None\n"
        "product = Operator('product', key_type=int)\n"
        "cart = Operator('cart')\n"
        f"items = cart.table('{name}', Row, key='number'{more})\n"
        "@product.register\nasync def create(ctx: Context) -> None:\n    await ctx.put(1)\n"
        "@product.register\nasync def drop(ctx: Context) -> None:\n    await ctx.delete()\n"
        "@cart.register\nasync def put(ctx: Context, number: int, of: int | None) -> None:\n"
        "    await ctx.rows(items).put(Row(number, of))\n"
        "@cart.register\nasync def count(ctx: Context) -> int:\n"
        "    return await ctx.rows(items).count(scan=True)\n"
        "app = App('shop', [cart, product])\n"
    )


async def store(client: EmbeddedClient, keys: list[str] = KEYS) -> None:
    for number, key in enumerate(keys):
        await client.call("product", number % 4, "create")
        await client.call("cart", key, "put", 1, number % 4)
        await client.call("cart", key, "put", 2, None)


def check_entries(client: EmbeddedClient, app: App) -> int:
    """Holds all entries against the rows; their number."""
    state = {
        entry: data
        for slot in client.engine.worker.slots.values()
        for entry, data in slot.state.entities(NEWEST).items()
    }
    wanted = {consequence.entries.full_name for _, consequence in app.entries() if consequence.entries}
    assert {name for name, _ in state if "*" in name} <= wanted
    return check_links(app, state)


@pytest.mark.parametrize("end", ENDS)
async def test_a_reference_comes_and_goes(edited: Edited, end: str) -> None:
    async with edited.open(app_of(edited)) as client:
        await store(client)
        if end == "crash":
            client.crash()
    app = app_of(edited, REFERS.format(on_delete=""))
    async with edited.open(app) as client:
        assert check_entries(client, app) == 12
        with pytest.raises(TransactionAborted, match=r"product\[3\] cannot be deleted: row 1 of table cart/items"):
            await client.call("product", 3, "drop")
        await client.call("cart", "c0", "put", 1, None)
        if end == "crash":
            client.crash()
    app = app_of(edited, REFERS.format(on_delete=", 'cascade'"))
    async with edited.open(app) as client:
        assert check_entries(client, app) == 11
        await client.call("product", 3, "drop")
        assert await client.call("cart", "c3", "count") == 1
        assert check_entries(client, app) == 8
    app = app_of(edited)
    async with edited.open(app) as client:
        assert check_entries(client, app) == 0
        await client.call("product", 2, "drop")


@pytest.mark.parametrize("end", ENDS)
async def test_rows_without_a_parent_refuse_a_reference(edited: Edited, end: str) -> None:
    async with edited.open(app_of(edited)) as client:
        await store(client)
        await client.call("product", 2, "drop")
        if end == "crash":
            client.crash()
    with pytest.raises(ConfigurationError) as refused:
        async with edited.open(app_of(edited, REFERS.format(on_delete=""))):
            pass
    text = str(refused.value)
    assert "1 of 27 stored entities and rows do not fit the new version" in text
    assert "it refers to product[2], which does not exist (cart/items(product) → product)" in text
    async with edited.open(app_of(edited)) as client:
        assert await client.call("cart", "c2", "count") == 2
        await client.call("product", 2, "create")
    app = app_of(edited, REFERS.format(on_delete=""))
    async with edited.open(app) as client:
        assert check_entries(client, app) == 12


async def test_entries_go_with_a_table_that_is_renamed(edited: Edited) -> None:
    app = app_of(edited, REFERS.format(on_delete=""))
    async with edited.open(app) as client:
        await store(client)
    more = REFERS.format(on_delete=", 'set_null'") + ", was='items'"
    app = app_of(edited, more, name="goods")
    async with edited.open(app) as client:
        assert check_entries(client, app) == 12
        await client.call("product", 1, "drop")
        assert check_entries(client, app) == 9
