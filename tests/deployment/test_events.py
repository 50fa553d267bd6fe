"""Events in a package and in a fingerprint: functions emit the same event that the unpacked app declares."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Any

import styx
from styx import App
from styx.deployment.fingerprint import fingerprint
from styx.deployment.package import pack, unpack
from tests.deployment.conftest import Load

SECRET = b"a secret of this test"
SOURCE = """
from datetime import timedelta
import msgspec
from styx import App, Context, Event, Operator

class Paid(msgspec.Struct):
    order: int
    tags: set[str] = set()

paid = Event("order-paid", Paid, version=VERSION, keep=timedelta(days=3))
shop = Operator("shop")

@shop.register
async def pay(ctx: Context, order: int) -> int:
    ctx.emit(paid, Paid(order, {"a"}))
    ctx.emit(paid, Paid(order), key=7)
    return paid.version

app = App("shop", [shop], events=[paid])
"""


def test_functions_of_an_unpacked_app_emit_its_events(load: Load) -> None:
    app = unpack(pack(load({"shopping.py": SOURCE.replace("VERSION", "2")}, "shopping").app, SECRET), SECRET)
    [event] = app.events.values()
    assert (event.name, event.version, event.keep) == ("order-paid", 2, timedelta(days=3))
    value = event.type(7, {"b", "a"})
    assert event.decode(event.encode(value)) == value

    async def main() -> int:
        async with styx.embedded(app) as client:
            result: int = await client.call("shop", "s", "pay", 7)
            return result

    assert asyncio.run(main()) == 2


def test_a_package_can_be_packed_again(load: Load) -> None:
    app = unpack(pack(load({"shopping.py": SOURCE.replace("VERSION", "2")}, "shopping").app, SECRET), SECRET)
    assert unpack(pack(app, SECRET), SECRET).events.keys() == {"order-paid"}


def test_another_version_of_an_event_is_another_app(load: Load) -> None:
    one = load({"shopping.py": SOURCE.replace("VERSION", "1")}, "shopping").app
    other = load({"shopping.py": SOURCE.replace("VERSION", "2")}, "shopping").app
    assert fingerprint(one, []) != fingerprint(other, [])


KEPT = """
from datetime import timedelta
from styx import App, Context, Event, Operator

paid = Event("paid", int, rows=timedelta(days=3))
shop = Operator("shop")

@shop.register
async def pay(ctx: Context, amount: int) -> list[int]:
    ctx.emit(paid, amount)
    by_table = [row.value for row in await ctx.rows(kept).select(scan=True)]
    assert by_table == [row.value for row in await ctx.rows(paid).select(scan=True)]
    return by_table

app = App("shop", [shop], events=[paid])
kept = app.kept_table(shop, paid)
"""


def test_functions_read_what_was_kept_by_the_table_of_the_unpacked_app(load: Load) -> None:
    app = load({"shopping.py": KEPT}, "shopping").app
    for _ in range(2):  # it can be packed again
        app = unpack(pack(app, SECRET), SECRET)
        function: Any = app.operator("shop").functions["pay"].func
        kept = function.__globals__["kept"]
        assert kept is app.kept_table("shop", app.events["paid"])
        assert kept is app.tables[kept.full_name] is app.declared_table("shop/paid")
        assert asyncio.run(paid_twice(app)) == [5, 7]


async def paid_twice(app: App) -> list[int]:
    async with styx.embedded(app) as client:
        await client.call("shop", "s", "pay", 5)
        found: list[int] = await client.call("shop", "s", "pay", 7)
        return found
