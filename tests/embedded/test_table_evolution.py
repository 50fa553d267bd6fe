"""Every way in which a table can change between two starts: works, is converted, dropped or renamed by name, or is
refused with words and leaves everything as it was.
"""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from styx import App
from styx.client.embedded import EmbeddedClient
from styx.errors import ConfigurationError
from tests.embedded.app_files import Edited

pytestmark = pytest.mark.anyio

ROW = "product: int; quantity: int = 1; label: str | None = None"
STORED = [(1, 1, "x"), (2, 5, None), (3, 2, "x")]
ENDS = ["close", "crash"]

WORKS: dict[str, tuple[dict[str, Any], Any]] = {
    "a column with a default": ({"row": ROW + "; price: int = 7"}, {"price": 7}),
    "a column dropped": ({"row": "product: int; quantity: int = 1"}, {}),
    "int becomes int or str": ({"row": ROW.replace("quantity: int", "quantity: int | str")}, {}),
    "an index": ({"more": ", indexes=[Index('by_quantity', order='quantity')]"}, {}),
    "a check that all meet": ({"more": ", checks=[Check('few', lambda row: row.quantity < 6)]"}, {}),
    "a unique index": ({"more": ", indexes=[Index('u', equal=('label', 'quantity'), unique=True)]"}, {}),
    "migrate, not needed": ({"more": ", migrate=lambda old: 1 // 0"}, {}),
}
REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "a column without a default": (
        {"row": ROW.replace("quantity", "price: int; quantity")},
        "cart/items[('k', 1)]: missing required field 'price'",
    ),
    "a type that rows do not fit": (
        {"row": ROW.replace("quantity: int = 1", "quantity: str")},
        "cart/items[('k', 1)].quantity: expected 'str', got 'int'",
    ),
    "a check": (
        {"more": ", checks=[Check('few', lambda row: row.quantity < 5)]"},
        "does not meet the check 'few'",
    ),
    "a unique index": (
        {"more": ", indexes=[Index('u', equal='label', unique=True)]"},
        "cart/items[('k', 3)]: cart/items[('k', 1)] has the same values in the unique index 'u'",
    ),
    "a reference": (
        {
            "before": "cart.table('labels', Label, key='name')",
            "more": ", references=[Ref('label', cart.tables['labels'])]",
        },
        "cart/items[('k', 1)]: it refers to cart/labels[('k', 'x')], which does not exist",
    ),
    "the primary key": ({"key": "quantity"}, "changes its primary key from product to quantity"),
    "the table is gone": ({"name": "goods"}, "table 'cart/items' has rows, and the new version lacks it"),
    "the operator is gone": ({"operator": "basket"}, "app 'shop' does not have any more"),
    "the operator's key_type": ({"declared": ", key_type=int"}, "key_type has changed from str to int"),
    "what migrate gives": (
        {"row": "product: int; price: int", "more": ", migrate=lambda old: Row(old['product'] + 1, 1)"},
        "its columns say the primary key 2",
    ),
}


def app_of(
    edited: Edited,
    row: str = ROW,
    more: str = "",
    *,
    before: str = "",
    key: str = "product",
    name: str = "items",
    operator: str = "cart",
    declared: str = "",
    app: str = "",
) -> App:
    fields = row.replace("; ", "\n    ")
    return edited.source(
        "from styx import Check, Index, Ref\n"
        f"class Row(msgspec.Struct):\n    {fields}\n"
        "class Label(msgspec.Struct):\n    name: str\n"
        f"cart = Operator('{operator}'{declared})\n{before}\n"
        f"items = cart.table('{name}', Row, key='{key}'{more})\n"
        "@cart.register\nasync def put(ctx: Context, rows: list[list[Any]]) -> None:\n"
        "    for row in rows:\n        await ctx.rows(items).put(Row(*row))\n"
        "@cart.register\nasync def products(ctx: Context) -> list[int]:\n"
        "    return await ctx.rows(items).keys(scan=True)\n"
        f"app = App('shop', [cart]{app})\n"
    )


async def store(edited: Edited, end: str) -> None:
    client = edited.open(app_of(edited))
    async with client:
        await client.call("cart", "k", "put", STORED)
        if end == "crash":
            client.crash()


def rows(client: EmbeddedClient, table: str = "cart/items") -> list[Any]:
    found: list[Any] = msgspec.to_builtins(client.rows(table, "k"))
    return found


@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize("row", WORKS)
async def test_what_works(edited: Edited, row: str, end: str) -> None:
    change, expected = WORKS[row]
    await store(edited, end)
    for _ in range(2):
        async with edited.open(app_of(edited, **change)) as client:
            assert [each["product"] for each in rows(client)] == [1, 2, 3]
            assert all(each | expected == each for each in rows(client))
            assert await client.call("cart", "k", "products") == [1, 2, 3]


@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize("row", REFUSED)
async def test_what_is_refused(edited: Edited, row: str, end: str) -> None:
    change, words = REFUSED[row]
    await store(edited, end)
    for _ in range(2):
        with pytest.raises(ConfigurationError) as refused:
            async with edited.open(app_of(edited, **change)):
                pass
        assert words in str(refused.value)
        assert "Nothing was changed" in str(refused.value)
    async with edited.open(app_of(edited)) as client:
        assert [tuple(each.values()) for each in rows(client)] == STORED
        await client.call("cart", "k", "put", [(4,)])
        assert len(rows(client)) == 4


@pytest.mark.parametrize("end", ENDS)
async def test_a_table_is_renamed(edited: Edited, end: str) -> None:
    await store(edited, end)
    for _ in range(2):
        async with edited.open(app_of(edited, name="goods", more=", was='items'")) as client:
            assert [tuple(each.values()) for each in rows(client, "cart/goods")] == STORED
            assert {table for table, _ in client.state()} == {"cart/goods"}
            assert await client.call("cart", "k", "products") == [1, 2, 3]
    with pytest.raises(ConfigurationError, match="table 'cart/goods' has rows, and the new version lacks it"):
        async with edited.open(app_of(edited)):
            pass
    async with edited.open(app_of(edited, more=", was='goods'")) as client:
        assert [tuple(each.values()) for each in rows(client)] == STORED, "it is renamed back"


@pytest.mark.parametrize("end", ENDS)
async def test_a_table_is_dropped(edited: Edited, end: str) -> None:
    await store(edited, end)
    async with edited.open(app_of(edited, name="goods", app=", drops=['cart/items']")) as client:
        assert client.state() == {}
        assert client.engine.worker.holdings() == (0, [])
        assert any("rows that are dropped: 3" in note for note in client.engine.app_change.notes)
    async with edited.open(app_of(edited)) as client:
        assert rows(client) == [], "they do not come back"


@pytest.mark.parametrize("end", ENDS)
async def test_migrate_converts_rows(edited: Edited, end: str) -> None:
    await store(edited, end)
    change = {
        "row": "product: int; price: int",
        "more": ", was='items', migrate=lambda old: Row(old['product'], old['quantity'] * 10)",
        "name": "goods",
    }
    client = edited.open(app_of(edited, **change))
    async with client:
        assert [tuple(each.values()) for each in rows(client, "cart/goods")] == [(1, 10), (2, 50), (3, 20)]
        if end == "crash":
            client.crash()
    async with edited.open(app_of(edited, **change)) as client:
        assert [tuple(each.values()) for each in rows(client, "cart/goods")] == [(1, 10), (2, 50), (3, 20)]
        await client.call("cart", "k", "put", [(4, 1)])
    async with edited.open(app_of(edited, **change)) as client:
        assert len(rows(client, "cart/goods")) == 4


@pytest.mark.parametrize("end", ENDS)
async def test_another_default_is_for_rows_that_are_made_from_then_on(edited: Edited, end: str) -> None:
    await store(edited, end)
    prices: list[int] = []
    for default in (7, 7, 9):
        client = edited.open(app_of(edited, ROW + f"; price: int = {default}"))
        async with client:
            await client.call("cart", "k", "put", [(10 + len(prices), 1, None)])
            prices.append(default)
            found = {row["product"]: row["price"] for row in rows(client, "cart/items")}
            assert found == {1: 7, 2: 7, 3: 7, **dict(enumerate(prices, 10))}
            if end == "crash":
                client.crash()


@pytest.mark.parametrize("end", ENDS)
async def test_a_view_is_added_changed_and_removed(edited: Edited, end: str) -> None:
    await store(edited, end)

    def with_view(view: str, **change: Any) -> App:
        return app_of(edited, **{"more": f")\nview = items.view('labels', {view}", **change})

    by_label = with_view("group_by='label', sum='quantity'")
    for _ in range(2):
        client = edited.open(by_label)
        async with client:
            assert rows(client, "cart/labels") == [{"label": "x", "count": 2, "quantity": 3}]
            if end == "crash":
                client.crash()
    async with edited.open(with_view("group_by='label', where=lambda row: row.quantity < 2, sum='quantity'")) as client:
        assert rows(client, "cart/labels") == [{"label": "x", "count": 1, "quantity": 1}]
        await client.call("cart", "k", "put", [(4, 1, "x"), (1, 2, "x")])
        assert rows(client, "cart/labels") == [{"label": "x", "count": 1, "quantity": 1}]
    with pytest.raises(
        ConfigurationError, match=r"cart/items\[\('k', 2\)\]: view 'labels' of table cart/items: where= "
    ):
        async with edited.open(with_view("where=lambda row: row.label < 'y'")):
            pass
    async with edited.open(app_of(edited)) as client:
        assert {table for table, _ in client.state()} == {"cart/items"}, "it goes with its declaration"
        await client.call("cart", "k", "put", [(5, 5, "x")])
    more = (
        ", migrate=lambda old: Row(old['product'], 10, old['label'], 1))\n"
        "view = items.view('labels', group_by='label', sum=('quantity', 'more')"
    )
    async with edited.open(app_of(edited, "product: int; quantity: int; label: str | None; more: int", more)) as client:
        assert rows(client, "cart/labels") == [{"label": "x", "count": 4, "quantity": 40, "more": 4}]


@pytest.mark.parametrize("end", ENDS)
async def test_a_view_over_a_partition_is_added_changed_and_removed(edited: Edited, end: str) -> None:
    await store(edited, end)

    def with_view(view: str) -> App:
        read = (
            "@cart.register_partition\nasync def part(ctx):\n    return await ctx.rows(view).select()\n"
            "@cart.register\nasync def group(ctx: Context) -> Any:\n"
            "    return [each for part in await ctx.call_all(cart, 'part') for each in part]\n"
        )
        return app_of(edited, more=f")\nview = items.view('labels', scope='partition', {view})\n{read}print(")

    by_label = with_view("group_by='label', min='quantity', max='quantity'")
    for _ in range(2):
        client = edited.open(by_label)
        async with client:
            group = await client.call("cart", "other", "group")
            assert group == [{"label": "x", "count": 2, "min_quantity": 1, "max_quantity": 2}]
            if end == "crash":
                client.crash()
    async with edited.open(with_view("where=lambda row: row.quantity < 3, max='product'")) as client:
        assert await client.call("cart", "other", "group") == [{"count": 2, "max_product": 3}]
        await client.call("cart", "k", "put", [(4, 2, None), (1, 3, "x")])
        assert await client.call("cart", "other", "group") == [{"count": 2, "max_product": 4}]
    async with edited.open(app_of(edited)) as client:
        assert {table for table, _ in client.state()} == {"cart/items"}
        await client.call("cart", "k", "put", [(5, 5, "x")])
    async with edited.open(by_label) as client:
        group = await client.call("cart", "k", "group")
        assert group == [{"label": "x", "count": 3, "min_quantity": 2, "max_quantity": 5}]


@pytest.mark.parametrize("end", ENDS)
async def test_a_view_over_all_entities_is_added_changed_and_removed(edited: Edited, end: str) -> None:
    await store(edited, end)

    def with_view(view: str) -> App:
        read = (
            "@cart.register\nasync def group(ctx: Context, *of: str) -> Any:\n    return await ctx.group(view, *of)\n"
        )
        return app_of(edited, more=f")\nview = items.view('labels', scope='app', {view})\n{read}print(")

    by_label = with_view("group_by='label', sum='quantity', max='quantity'")
    for _ in range(2):
        client = edited.open(by_label)
        async with client:
            group = await client.call("cart", "other", "group", "x")
            assert group == {"label": "x", "count": 2, "quantity": 3, "max_quantity": 2}
            if end == "crash":
                client.crash()
    async with edited.open(with_view("where=lambda row: row.quantity < 3, sum='quantity'")) as client:
        assert await client.call("cart", "other", "group") == {"count": 2, "quantity": 3}
        await client.call("cart", "k", "put", [(4, 2, None), (1, 3, "x")])
        assert await client.call("cart", "other", "group") == {"count": 2, "quantity": 4}
    async with edited.open(app_of(edited)) as client:
        assert {table for table, _ in client.state()} == {"cart/items"}
        await client.call("cart", "k", "put", [(5, 5, "x")])
    async with edited.open(by_label) as client:
        group = await client.call("cart", "k", "group", "x")
        assert group == {"label": "x", "count": 3, "quantity": 10, "max_quantity": 5}


@pytest.mark.parametrize("end", ENDS)
async def test_serial_numbers_go_on_behind_a_renaming(edited: Edited, end: str) -> None:
    serial = {"row": "product: int = 0; quantity: int = 1", "more": ", auto='serial'"}
    client = edited.open(app_of(edited, **serial))
    async with client:
        await client.call("cart", "k", "put", [(), ()])
        if end == "crash":
            client.crash()
    serial["more"] += ", was='items'"
    async with edited.open(app_of(edited, **serial, name="goods")) as client:
        await client.call("cart", "k", "put", [()])
        assert await client.call("cart", "k", "products") == [1, 2, 3]


@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize("renamed", [False, True])
async def test_numbers_begin_behind_those_of_rows_that_were_there(edited: Edited, renamed: bool, end: str) -> None:
    await store(edited, end)
    row, more, name = "product: int = 0; quantity: int = 1", ", auto='serial'", "items"
    if renamed:
        more, name = more + ", was='items'", "goods"
    client = edited.open(app_of(edited, row, more, name=name))
    async with client:
        await client.call("cart", "k", "put", [()])
        await client.call("cart", "l", "put", [()])
        assert await client.call("cart", "k", "products") == [1, 2, 3, 4]
        assert await client.call("cart", "l", "products") == [1]
        if end == "crash":
            client.crash()
    async with edited.open(app_of(edited, row, more, name=name)) as client:
        await client.call("cart", "k", "put", [()])
        assert await client.call("cart", "k", "products") == [1, 2, 3, 4, 5]
