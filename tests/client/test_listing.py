"""Listings by clients: an embedded engine, a gateway by HTTP, and the blocking clients of both give the same pages."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any, Final

import msgspec
import pytest

import styx
from styx import App, Context, Event, ListEntry, Operator, RequestRejected, SnapshotTooOld, TransactionAborted
from styx.client.http import HttpClient
from styx.errors import BadArguments
from styx.model.freshness import Freshness
from styx.model.function_spec import LIST_FUNCTION
from styx.model.limits import Limits
from styx.testing import embedded_cluster
from styx.worker.reads import Reads
from tests.gateway.running import running
from tests.plain_form import plain_form

pytestmark = pytest.mark.anyio


class Item(msgspec.Struct):
    product: str
    number: int
    price: int = 1


account = Operator("account", key_type=str)
counter = Operator("counter", key_type=int, n_partitions=3)
seat = Operator("seat", key_type=(str, int), partition_key=lambda key: key[0])
cart = Operator("cart", key_type=str)
items = cart.table("items", Item, key=("product", "number"))
totals: Any = items.view("totals", group_by="product", sum="price", min="price")
everywhere: Any = items.view("everywhere", scope="app")
sold = Event("sold", int, rows=timedelta(days=1))


@account.register
async def put(ctx: Context, value: Any) -> None:
    await ctx.put(value)


@account.register
async def delete(ctx: Context) -> None:
    await ctx.delete()


@account.register
async def transfer(ctx: Context, other: str, amount: int) -> None:
    await ctx.put(await ctx.get(0) - amount)
    ctx.call_async(account, receive, other, (amount,))


@account.register
async def receive(ctx: Context, amount: int) -> None:
    await ctx.put(await ctx.get(0) + amount)


@cart.register
async def emits(ctx: Context) -> None:
    ctx.emit(sold, 7)


app = App("shop", [account, counter, seat, cart], events=[sold])
TEXTS: Final = ["", "A", "a", "a b", "a/b", "aa", "ab", "b", "z", "é", "ä", "日本", "😀", "?&=%"]
NUMBERS: Final = [-(2**63), -10, -9, -1, 0, 1, 2, 10, 2**63 - 1]
SEATS: Final = [(row, number) for row in ("", "a", "aa", "b", "é") for number in (-1, 2, 10)]
ROWS: Final = [(name, Item(product, number)) for name in ("x", "y", "é") for product in "pq" for number in (2, 10, -1)]


async def filled(client: Any) -> None:
    await client.load(account, [(key, {"name": key}) for key in TEXTS if key])
    await client.load(counter, [(key, key) for key in NUMBERS])
    await client.load(seat, [(key, [*key]) for key in SEATS])
    await client.load_rows(items, ROWS)
    await client.call(cart, "z", emits)


@pytest.fixture(params=["embedded", "http"])
async def client(request: pytest.FixtureRequest) -> AsyncIterator[Any]:
    async with styx.embedded(app, n_slots=4) as embedded:
        await filled(embedded)
        if request.param == "embedded":
            yield embedded
            return
        async with running(embedded.engine) as server, HttpClient(server.url) as client:
            yield client


async def walked(client: Any, listed: Any, limit: int, **options: Any) -> list[Any]:
    """The keys of all pages, of the epoch of the first one; no page is empty but the only one."""
    page = await client.list(listed, limit=limit, **options)
    keys = [entry.key for entry in page.entries]
    while page.after is not None:
        assert len(page.entries) == limit
        options["after"], options["at"] = page.after, page.epoch
        page = await client.list(listed, limit=limit, **options)
        assert page.entries
        assert page.epoch == options["at"]
        keys += [entry.key for entry in page.entries]
    return keys


@pytest.mark.parametrize("limit", [1, 3, 100])
async def test_pages_have_all_keys_in_order(client: Any, limit: int) -> None:
    assert await walked(client, account, limit) == sorted(key for key in TEXTS if key)
    assert await walked(client, "counter", limit) == NUMBERS
    assert await walked(client, seat, limit) == sorted(SEATS)
    rows = sorted((name, item.product, item.number) for name, item in ROWS)
    assert await walked(client, items, limit) == rows
    assert await walked(client, "cart/totals", limit) == sorted({key[:2] for key in rows})


async def test_values_are_those_that_reads_give(client: Any) -> None:
    for listed, keys in ((account, TEXTS[1:]), (counter, NUMBERS), (seat, SEATS)):
        for key, value in (await client.list(listed)).entries:
            assert value == (await client.read(listed, key)).unwrap()
            assert key in keys
    page = await client.list(items)
    assert [entry.value for entry in page.entries] == [
        Item(product, number) for _, product, number in [entry.key for entry in page.entries]
    ]
    plain = await client.list("cart/items", limit=1)
    assert plain.entries == [ListEntry(("x", "p", -1), {"product": "p", "number": -1, "price": 1})]
    total = (await client.list("cart/totals", limit=1)).entries[0]
    assert total == ListEntry(("x", "p"), {"product": "p", "count": 3, "price": 3, "min_price": 1})
    kept = (await client.list("cart/sold")).entries
    assert [(entry.key[0], entry.value["value"]) for entry in kept] == [("z", 7)]
    keys = (await client.list(account, values=False)).entries
    assert keys == [ListEntry(key, None) for key in sorted(TEXTS[1:])]


async def test_prefixes(client: Any) -> None:
    async def keys(listed: Any, prefix: Any, **options: Any) -> list[Any]:
        return await walked(client, listed, 2, prefix=prefix, **options)

    for prefix in ("", "a", "ab", "é", "x", "日", "😀", "?", "z\U0010ffff"):
        assert await keys(account, prefix) == sorted(key for key in TEXTS if key and key.startswith(prefix))
    assert await keys(account, "a", after="a b") == ["a/b", "aa", "ab"]
    assert await keys(account, "a", after="z") == []
    assert await keys(seat, ("a",)) == sorted(each for each in SEATS if each[0].startswith("a"))
    assert await keys(seat, '["a"]') == await keys(seat, ("a",))
    assert await keys(seat, ("a", 10)) == [("a", 10)]
    assert await keys(items, ("x", "q")) == [("x", "q", -1), ("x", "q", 2), ("x", "q", 10)]
    assert await keys(items, "", after=("x", "q")) == sorted(
        key for key in ((name, item.product, item.number) for name, item in ROWS) if key > ("x", "q")
    )


@pytest.mark.parametrize(
    ("listed", "options", "complaint"),
    [
        ("nobody", {}, "unknown_operator"),
        ("cart/nothing", {}, "has no table 'nothing'"),
        ("cart/everywhere", {}, "is of no entity"),
        ("counter", {"prefix": 7}, "are numbers, which have no prefix"),
        ("counter", {"after": "x"}, "must be a decimal number"),
        ("seat", {"prefix": "a"}, "is a JSON array such as"),
        ("seat", {"after": ("a",)}, "has keys of type"),
        ("cart/items", {"after": ("a", 1)}, r"have the parts \(str, str, int\)"),
        ("cart/items", {"prefix": (1,)}, r"have the parts \(str, str, int\)"),
    ],
)
async def test_what_cannot_be_listed_is_refused(
    client: Any, listed: str, options: dict[str, Any], complaint: str
) -> None:
    with pytest.raises(RequestRejected, match=complaint):
        await client.list(listed, **options)


async def test_what_is_no_listing_is_not_sent(client: Any) -> None:
    for listed, options in ((7, {}), (account, {"limit": 0}), (account, {"limit": 10_001}), (account, {"prefix": 1.5})):
        with pytest.raises(BadArguments):
            await client.list(listed, **options)


async def test_the_iterator_gives_one_moment_beside_writers(client: Any) -> None:
    seen = [key async for key, _ in client.entries(seat, page=2)]
    assert seen == sorted(SEATS)
    part = [entry async for entry in client.entries(account, prefix="a", page=2, values=False)]
    assert [entry.key for entry in part] == ["a", "a b", "a/b", "aa", "ab"]


async def test_a_listing_is_in_the_session(client: Any) -> None:
    page = await client.list(account, freshness="session")
    assert client.epoch >= page.epoch >= 0
    assert (await client.list(account, freshness="strict")).epoch >= page.epoch


async def test_deleted_entities_and_those_that_have_only_rows_are_not_listed() -> None:
    async with styx.embedded(app) as client:
        assert (await client.list(cart)).entries == []
        await client.load_rows(items, [("only rows", Item("p", 1))])
        await client.call(account, "gone", put, 1)
        await client.call(account, "there", put, 0)
        await client.call(account, "gone", delete)
        assert (await client.list(cart)).entries == []
        assert [key for key, _ in (await client.list(items)).entries] == [("only rows", "p", 1)]
        assert (await client.list(account)).entries == [ListEntry("there", 0)]
        await client.call(account, "gone", put, 2)
        assert [key for key, _ in (await client.list(account)).entries] == ["gone", "there"]


async def test_a_page_at_an_epoch_has_what_has_gone_since_and_not_what_has_come() -> None:
    async with styx.embedded(app) as client:
        for key in ("a", "b", "d"):
            await client.call(account, key, put, key)
        first = await client.list(account, limit=1)
        await client.call(account, "b", delete)
        await client.call(account, "c", put, "c")
        await client.call(account, "d", put, "changed")
        rest = await client.list(account, after=first.after, at=first.epoch)
        assert rest.entries == [ListEntry("b", "b"), ListEntry("d", "d")]
        assert [entry.value for entry in (await client.list(account)).entries] == ["a", "c", "changed"]


async def test_an_epoch_that_is_not_kept_any_more(client: Any) -> None:
    page = await client.list(account, limit=1)
    for number in range(Limits().versions_max + 1):
        await client.call(account, "a", put, number)
    with pytest.raises(SnapshotTooOld, match="Read at a later epoch"):
        await client.list(account, after=page.after, at=page.epoch)
    iterator = client.entries(account, page=1)
    await anext(iterator)
    for number in range(Limits().versions_max + 1):
        await client.call(account, "a", put, number)
    with pytest.raises(SnapshotTooOld):
        await anext(iterator)


async def test_pages_of_one_epoch_have_one_sum_beside_transfers(tmp_path: Path) -> None:
    names = [f"n{number}" for number in range(60)]
    limits = Limits(versions_max=400)
    async with embedded_cluster(app, tmp_path / "data", limits=limits) as cluster:
        await cluster.load(account, [(name, 100) for name in names])
        stop = False

        async def write(offset: int) -> None:
            number = offset
            while not stop:
                await cluster.call(account, names[number % 60], transfer, names[(number * 7 + 3) % 60], 5)
                number += 1

        writers = [asyncio.create_task(write(offset)) for offset in (0, 20, 40)]
        epochs = set[int]()
        rounds = 0
        while rounds < 15 or len(epochs) <= 5:  # else nobody wrote beside it
            rounds += 1
            page = await cluster.list(account, limit=7)
            values = [entry.value for entry in page.entries]
            epochs.add(page.epoch)
            while page.after is not None:
                page = await cluster.list(account, limit=7, after=page.after, at=page.epoch)
                values += [entry.value for entry in page.entries]
            assert (len(values), sum(values)) == (60, 6_000)
        stop = True
        await asyncio.gather(*writers)


async def test_a_listing_goes_on_behind_a_crash(tmp_path: Path) -> None:
    async with embedded_cluster(app, tmp_path / "data") as cluster:
        for key in ("a", "b", "c"):
            await cluster.call(account, key, put, key)
        page = await cluster.list(account, limit=1)
        await cluster.crash_and_recover()
        rest = await cluster.list(account, after=page.after)
        assert [entry.key for entry in rest.entries] == ["b", "c"]


async def test_the_keys_are_put_in_order_in_pieces() -> None:
    async with styx.embedded(app, n_slots=1) as client:
        await client.load(account, [(f"k{number:05}", number) for number in range(20_000)])
        asked = client.engine.reads._reads
        before = asked.started
        assert [key for key, _ in (await client.list(account, limit=2)).entries] == ["k00000", "k00001"]
        assert asked.started - before == 3, "8,192 keys at once"
        assert [key for key, _ in (await client.list(account, limit=1, after="k19998")).entries] == ["k19999"]
        assert asked.started - before == 4, "and never again"


@plain_form
async def test_a_part_of_a_listing_takes_a_slice_for_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each can be 500 entries: 64 of them in one slice, as of other functions, would hold up the protocol."""
    ended: list[int] = []
    run = Reads.run

    def counted(self: Reads, invocations: int) -> Any:
        found = run(self, invocations)
        ended.append(len(found))
        return found

    monkeypatch.setattr(Reads, "run", counted)
    async with styx.embedded(app, n_slots=4) as client:
        await client.load(account, [(f"k{number:03}", number) for number in range(100)])
        pages = await asyncio.gather(*(client.list(account) for _ in range(5)))
        assert {len(page.entries) for page in pages} == {100}
    assert (max(ended), sum(ended)) == (1, 20)


async def test_a_page_ends_before_it_is_too_large() -> None:
    large = "x" * 600_000
    async with styx.embedded(app, n_slots=2) as client:
        await client.load(account, [(f"k{number:02}", large) for number in range(20)])
        page = await client.list(account)
        assert len(page.entries) == 6, "4 MiB"
        assert len([key async for key, _ in client.entries(account)]) == 20
        assert len((await client.list(account, values=False)).entries) == 20


class Picky(msgspec.Struct):
    number: int

    def __post_init__(self) -> None:
        if self.number in REFUSED:
            raise ValueError("thirteen")


REFUSED: set[int] = set()
picky = Operator("picky", key_type=str, state_type=Picky)


async def test_a_value_that_does_not_fit_its_type_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    async with styx.embedded(App("picky", [picky])) as client:
        await client.load(picky, [("a", Picky(1)), ("b", Picky(13))])
        monkeypatch.setattr("tests.client.test_listing.REFUSED", {13})
        with pytest.raises(TransactionAborted, match=r"picky\['b'\] cannot be listed: thirteen"):
            await client.list(picky)
        assert (await client.list(picky, limit=1, prefix="a")).entries == [ListEntry("a", {"number": 1})]
        assert [key for key, _ in (await client.list(picky, values=False)).entries] == ["a", "b"]


async def test_no_transaction_can_list() -> None:
    async with styx.embedded(app) as client:
        await client.call(account, "a", put, 1)
        with pytest.raises(TransactionAborted, match="by reads outside the log alone"):
            await client.call("account*", 0, LIST_FUNCTION, "", "", None, 10, 1_000, True)
        with pytest.raises(RequestRejected, match="unknown_function"):
            await client.call(account, "a", LIST_FUNCTION, "", "", None, 10, 1_000, True)


def test_blocking_clients_list(tmp_path: Path) -> None:
    with styx.embedded_sync(app) as client:
        client.load(account, [(key, 1) for key in "abc"])
        page = client.list(account, limit=2)
        assert [entry.key for entry in page.entries] == ["a", "b"]
        assert client.list(account, after=page.after, at=page.epoch).entries == [ListEntry("c", 1)]
        assert [key for key, _ in client.entries(account, page=1)] == ["a", "b", "c"]


async def test_a_blocking_client_lists_through_a_gateway() -> None:
    async with styx.embedded(app) as embedded, running(embedded.engine) as server:
        await embedded.load(account, [(key, 1) for key in "abc"])

        def listed() -> list[str]:
            with styx.connect_sync(server.url) as client:
                return [key for key, _ in client.entries("account", page=2)]

        assert await asyncio.get_running_loop().run_in_executor(None, partial(listed)) == ["a", "b", "c"]


async def test_too_many_entries_are_never_asked_of_a_slot_at_once() -> None:
    async with styx.embedded(app, n_slots=1) as client:
        await client.load(account, [(f"k{number:04}", number) for number in range(1_200)])
        assert [entry.value for entry in (await client.list(account, limit=1_150)).entries] == list(range(1_150))
        arguments = msgspec.msgpack.encode(("", "", None, 501, 9, True))
        request = client.engine.maker.make("account*", 0, LIST_FUNCTION, arguments)
        reply = await client.engine.read_reply(request, Freshness(), 5)
        assert reply.error is not None
        assert "1 to 500" in reply.error.message
