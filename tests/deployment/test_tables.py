"""Tables in a package and in a fingerprint: what an app declares of rows must be the same wherever it is unpacked."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import msgspec
import pytest

import styx
from styx import App, Check, Index, Operator, Ref
from styx.deployment.fingerprint import fingerprint
from styx.deployment.package import pack, unpack
from styx.errors import TransactionAborted
from styx.schema.description import describe
from styx.schema.state_reading import StateReader
from tests.deployment.conftest import Load

SECRET = b"a secret of this test"
SOURCE = """
from __future__ import annotations
from datetime import date, timedelta
from typing import Annotated
import msgspec
from styx import App, Check, Context, Index, Operator, Ref, Tumbling

MAX = 9

class Item(msgspec.Struct):
    product: int
    quantity: Annotated[int, msgspec.Meta(gt=0)] = 1
    label: str | None = None
    day: date = date(2026, 1, 9)

class Part(msgspec.Struct):
    of: int
    id: str = ""

class Old(msgspec.Struct):
    product: int

def converted(old: Old) -> Item:
    return Item(old.product, MAX)

def few(row):
    return row.quantity <= MAX

cart = Operator("cart")
items = cart.table(
    "items",
    Item,
    key="product",
    indexes=[Index("by_quantity", order="quantity"), Index("by_label", equal="label", unique=True)],
    checks=[Check("few", few), Check("odd", lambda row: row.quantity != MAX - 1)],
    was="goods",
    migrate=converted,
)
total = items.view("total", group_by="label", where=lambda row: row.quantity != MAX + 1, sum="quantity")
days = Tumbling("day", timedelta(days=7), date(2026, 1, 1))
weekly = items.view("weekly", group_by=("label", days), min="quantity", max="day", scope="partition")
periods = Tumbling("day", timedelta(days=30))
monthly = items.view("monthly", group_by=periods, max="quantity", scope="app")
parts = cart.table("parts", Part, key="id", references=[Ref("of", items, on_delete="cascade")], auto="unique")

@cart.register
async def fill(ctx: Context, *quantities: int) -> list[int]:
    rows = ctx.rows(items)
    for number, quantity in enumerate(quantities):
        await rows.insert(Item(number, quantity))
        await ctx.rows(parts).insert(Part(number))
    await rows.delete(0)
    found = await rows.select(by="by_quantity", scan=True)
    assert days.start(date(2026, 1, 9)) == date(2026, 1, 8)
    assert (await ctx.group(monthly, periods.start(date(2026, 1, 9)))).max_quantity is None
    assert (await ctx.rows(total).get("x")).count == 0
    return [row.product for row in found] + [await ctx.rows(parts).count(scan=True)]

app = App("shop", [cart], drops=["cart/old"])
"""


def test_tables_come_back_as_they_were(load: Load) -> None:
    app = load({"shop_tables.py": SOURCE}, "shop_tables").app
    unpacked = unpack(pack(app, SECRET), SECRET)
    assert describe(unpacked) == describe(app)
    assert unpacked.drops == ("cart/old",)
    assert [table.name for table in unpacked.tables.values()] == ["items", "parts", "total"]
    items, parts = unpacked.tables["cart/items"], unpacked.tables["cart/parts"]
    assert parts.references[0].parent is items
    assert items.was == "goods"
    assert items is not app.tables["cart/items"]
    reading = StateReader(items, 1_000).read(b"\x81\xa7product\x05")
    assert reading.data is None, "the row type's defaults read it"
    again = unpack(pack(unpacked, SECRET), SECRET)
    assert describe(again) == describe(app)


@pytest.mark.parametrize("packed", [False, True])
def test_functions_use_the_tables_of_their_app(load: Load, packed: bool) -> None:
    app = load({"shop_tables.py": SOURCE}, "shop_tables").app
    if packed:
        app = unpack(pack(app, SECRET), SECRET)

    async def run() -> None:
        async with styx.embedded(app) as client:
            assert await client.call("cart", "a", "fill", 1, 3, 2) == [2, 1, 2]
            for wrong, kind in ((0, "UnsupportedValue"), (8, "CheckViolation"), (10, "CheckViolation")):
                with pytest.raises(TransactionAborted) as raised:
                    await client.call("cart", "b", "fill", wrong)
                assert raised.value.type == kind

    asyncio.run(run())


class Row(msgspec.Struct):
    a: int = 0
    b: int = 0


class Wider(msgspec.Struct):
    a: int
    b: int = 0
    c: int = 0


def app_of(row: Any = Row, drops: Any = (), **declared: Any) -> App:
    cart = Operator("cart")
    parent = cart.table("parents", Row, key="a")
    if declared.pop("refers", False):
        declared["references"] = [Ref("b", parent)]
    cart.table("items", row, **{"key": "a", **declared})
    return App("shop", [cart], drops=drops)


def limit_of(most: int) -> Check:
    return Check("few", lambda row: row.b < most)


def double(row: Any) -> Any:
    return row


@pytest.mark.parametrize(
    "other",
    [
        lambda: app_of(Wider),
        lambda: app_of(drops=["cart/old"]),
        lambda: app_of(key="b"),
        lambda: app_of(indexes=[Index("by_b", order="b")]),
        lambda: app_of(indexes=[Index("by_b", equal="b")]),
        lambda: app_of(indexes=[Index("by_b", order="b", unique=True)]),
        lambda: app_of(checks=[limit_of(3)]),
        lambda: app_of(checks=[limit_of(4)]),
        lambda: app_of(refers=True),
        lambda: app_of(was="old"),
        lambda: app_of(migrate=double),
        lambda: app_of(auto="serial"),
    ],
    ids=[
        "column",
        "drops",
        "key",
        "order",
        "equal",
        "unique",
        "check",
        "bound in a check",
        "reference",
        "was",
        "migrate",
        "auto",
    ],
)
def test_each_part_of_a_declaration_counts(other: Callable[[], App]) -> None:
    modules: set[str] = set()
    assert fingerprint(app_of(), modules) == fingerprint(app_of(), modules)
    assert fingerprint(other(), modules) == fingerprint(other(), modules)
    assert fingerprint(other(), modules) != fingerprint(app_of(), modules)
    assert fingerprint(app_of(checks=[limit_of(3)]), modules) != fingerprint(app_of(checks=[limit_of(4)]), modules)


FAMILY = """
import msgspec
from styx import App, Operator, Ref

class Row(msgspec.Struct):
    id: int
    other: str = ""

child, parent = Operator("child"), Operator("parent")
first = parent.table("first", Row, key="id", references=[Ref("id", "first")])
second = parent.table("second", Row, key="id", references=[Ref("id", first), Ref(("other", "id"), "second")])
rows = child.table("rows", Row, key="id", references=[Ref("other", parent), Ref(("other", "id"), second, "cascade")])
app = App("family", [child, parent])
"""


def test_references_to_others_are_rebuilt_in_whatever_order_operators_come(load: Load) -> None:
    app = load({"family.py": FAMILY}, "family").app
    rebuilt = unpack(pack(app, SECRET), SECRET)
    assert describe(rebuilt) == describe(app)
    assert fingerprint(rebuilt, ()) == fingerprint(app, ())
    assert describe(app).operators["child"].tables["rows"].references == [
        "child/rows(other) → parent, restrict",
        "child/rows(other, id) → parent/second, cascade",
    ]
    for each in (app, rebuilt):
        assert [one.at_parent.name for one in each.operators["parent"].tables["second"].referrers] == [
            "parent*second:child.rows(other,id)",
            "parent*second:parent.second(other,id)",
        ]
        assert list(each.operators["parent"].tables) == ["first", "second"]
        assert len(each.operators["parent"].referrers) == 1


LIVES = """
from datetime import timedelta
import msgspec
from styx import App, Operator

class Item(msgspec.Struct):
    product: int

cart = Operator("cart", ttl=timedelta(hours=1))
cart.table("items", Item, key="product", ttl=timedelta(minutes=1))
cart.table("given", Item, key="product", ttl="given")
cart.table("plain", Item, key="product")
app = App("shop", [cart])
"""


def test_times_to_live_are_in_a_package_and_in_a_fingerprint(load: Load) -> None:
    app = load({"lives_0.py": LIVES}, "lives_0").app
    unpacked = unpack(pack(app, SECRET), SECRET)
    assert describe(unpacked) == describe(app)
    assert unpacked.operators["cart"].ttl_us == 3_600_000_000
    tables = {name: (table.fades, table.ttl_us) for name, table in unpacked.tables.items()}
    assert tables == {"cart/items": (True, 60_000_000), "cart/given": (True, 0), "cart/plain": (False, 0)}
    assert fingerprint(unpacked, []) == fingerprint(app, [])
    changes = ((", ttl=timedelta(hours=1)", ""), ("minutes=1", "minutes=2"), (', ttl="given"', ""))
    for number, (was, now) in enumerate(changes, 1):
        changed = load({f"lives_{number}.py": LIVES.replace(was, now)}, f"lives_{number}").app
        assert fingerprint(changed, []) != fingerprint(app, [])
