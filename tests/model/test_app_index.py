"""App-wide indexes: unique over all entities, found from any function, kept by every statement."""

from __future__ import annotations

import datetime
from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from styx import App, ConfigurationError, Context, Index, Operator, PartitionContext, TransactionAborted
from styx.deployment.package import pack_code, unpack_code
from styx.errors import BadQuery, LoadFailed
from styx.messages import Request
from styx.model.app_index import AppIndex, app_index
from styx.schema.description import describe
from styx.testing import EmbeddedCluster, SerialReference, embedded_cluster

pytestmark = pytest.mark.anyio


class User(msgspec.Struct):
    number: int
    email: str | None = None
    city: str = "here"
    born: datetime.date = datetime.date(2000, 1, 1)


group = Operator("group", key_type=(str, int))
users = group.table(
    "users",
    User,
    key="number",
    indexes=[
        Index("by_email", equal="email", unique=True, scope="app"),
        Index("by_city", equal=("city", "born"), scope="app"),
    ],
)
ask = Operator("ask")
A, B = ("a", 1), ("b", 2)


@group.register
async def add(ctx: Context, number: int, email: str | None = None, city: str = "here") -> None:
    await ctx.rows(users).insert(User(number, email, city))


@group.register
async def put(ctx: Context, number: int, email: str | None = None, city: str = "here") -> None:
    await ctx.rows(users).put(User(number, email, city))


@group.register
async def move(ctx: Context, number: int, email: str | None) -> None:
    await ctx.rows(users).update(number, email=email)


@group.register
async def remove(ctx: Context, number: int) -> None:
    await ctx.rows(users).delete(number)


@group.register
async def moves_late(ctx: Context, number: int) -> None:
    """The called function writes after this one, and its implied calls come before."""
    ctx.call_async(group, move, ctx.key, (number, "last"))
    await ctx.rows(users).update(number, email="amid")


@group.register
async def fails(ctx: Context, number: int) -> None:
    await ctx.rows(users).insert(User(number, "ghost"))
    raise ValueError("on purpose")


@group.register
async def all_move(ctx: Context, city: str) -> None:
    ctx.call_all_async(group, each_moves, (city,))


@group.register_partition
async def each_moves(ctx: PartitionContext, city: str) -> None:
    for key in (A, B):
        if ctx.holds(key):
            for user in await ctx.rows(users, of=key).select(scan=True):
                await ctx.rows(users, of=key).update(user.number, city=city)


@group.register_partition
async def looks_up(ctx: PartitionContext) -> None:
    await ctx.find(users, "by_email", email="x")


@group.register(local=True)
async def add_here(ctx: Context, number: int, email: str) -> None:
    await ctx.rows(users).insert(User(number, email))


@ask.register(read_only=True)
async def by_email(ctx: Context, email: str) -> list[Any]:
    found: list[Any] = await ctx.find(users, "by_email", email=email)
    return found


@ask.register(read_only=True)
async def by_city(ctx: Context, city: str, first: int = 0, last: int = 0) -> list[Any]:
    born = datetime.date(2000, 1, 1)
    found: list[Any] = await ctx.find(users, "by_city", {"city": city}, born=born, first=first, last=last)
    return found


@ask.register
async def wrong(ctx: Context, what: str) -> None:
    tries: dict[str, Callable[[], Any]] = {
        "no index": lambda: ctx.find(users, "by_name", name=1),
        "missing": lambda: ctx.find(users, "by_city", city="x"),
        "none": lambda: ctx.find(users, "by_email", email=None),
        "type": lambda: ctx.find(users, "by_email", email=5),
        "table": lambda: ctx.find(7, "by_email", email="x"),
        "ends": lambda: ctx.find(users, "by_email", email="x", first=-1),
        "both": lambda: ctx.find(users, "by_email", email="x", first=1, last=1),
    }
    await tries[what]()


@ask.register
async def forgets(ctx: Context) -> None:
    _ = ctx.find(users, "by_email", email="x")


@ask.register
async def asks_partitions(ctx: Context) -> None:
    await ctx.call_all(group, looks_up)


app = App("users", [group, ask])


async def failure(cluster: EmbeddedCluster, operator: Operator, key: Any, function: Any, *args: Any) -> str:
    with pytest.raises(TransactionAborted) as caught:
        await cluster.call(operator, key, function, *args)
    return str(caught.value)


async def test_a_value_is_unique_in_the_app() -> None:
    async with embedded_cluster(app) as cluster:
        await cluster.call(group, A, add, 1, "x")
        assert await failure(cluster, group, B, add, 7, "x") == (
            "UniqueViolation: row 7 of table group/users of group[('b', 2)]: row 1 of table group/users of "
            "group[('a', 1)] has email='x' already, which is unique in the app by index 'by_email'"
        )
        assert "UniqueViolation" in await failure(cluster, group, A, add, 2, "x")
        await cluster.call(group, A, move, 1, "y")
        await cluster.call(group, B, add, 7, "x")  # free again
        assert await cluster.call(ask, "", by_email, "x") == [[["b", 2], 7]]
        assert await cluster.call(ask, "", by_email, "y") == [[["a", 1], 1]]
        await cluster.call(group, B, remove, 7)
        assert await cluster.call(ask, "", by_email, "x") == []
        await failure(cluster, group, B, fails, 3)
        assert await cluster.call(ask, "", by_email, "ghost") == []


async def test_a_local_function_that_changes_an_entry_runs_as_another_one_does() -> None:
    async with embedded_cluster(app) as cluster:
        for number in range(8):
            await cluster.call(group, A, add_here, number, f"{number}")
        assert "UniqueViolation" in await failure(cluster, group, B, add_here, 9, "3")
        assert await cluster.call(ask, "", by_email, "5") == [[["a", 1], 5]]


async def test_loaded_rows_are_found_and_unique() -> None:
    async with embedded_cluster(app) as cluster:
        pairs = [((f"g{n % 7}", n % 7), User(n, f"{n}@x")) for n in range(50)]
        await cluster.load_rows(users, pairs)
        assert await cluster.call(ask, "", by_email, "23@x") == [[["g2", 2], 23]]
        with pytest.raises(LoadFailed, match="unique in the app by index 'by_email'"):
            await cluster.load_rows(users, [(A, User(1, "23@x"))])
        await cluster.load_rows(users, [(("g2", 2), User(23, "new"))], replace=True)
        await cluster.load_rows(users, [(A, User(1, "23@x"))])
        assert len(await cluster.call(ask, "", by_city, "here")) == 51


async def test_rows_with_none_are_in_no_index_and_never_alike() -> None:
    async with embedded_cluster(app) as cluster:
        await cluster.call(group, A, add, 1)
        await cluster.call(group, B, add, 1)
        await cluster.call(group, A, move, 1, "x")
        await cluster.call(group, A, move, 1, None)
        await cluster.call(group, B, move, 1, "x")
        assert await cluster.call(ask, "", by_email, "x") == [[["b", 2], 1]]


async def test_rows_are_found_in_order_of_their_keys() -> None:
    async with embedded_cluster(app) as cluster:
        for key, number in ((B, 3), (A, 9), (B, 1), (A, 2)):
            await cluster.call(group, key, put, number, None, "there")
        found = [[["a", 1], 2], [["a", 1], 9], [["b", 2], 1], [["b", 2], 3]]
        assert await cluster.call(ask, "", by_city, "there") == found
        assert await cluster.call(ask, "", by_city, "there", 1) == found[:1]
        assert await cluster.call(ask, "", by_city, "there", 0, 2) == found[2:]
        await cluster.call(group, A, all_move, "gone")
        assert await cluster.call(ask, "", by_city, "there") == []
        assert await cluster.call(ask, "", by_city, "gone") == found


async def test_calls_in_another_order_than_the_writes_leave_the_right_entries() -> None:
    async with embedded_cluster(app) as cluster:
        await cluster.call(group, A, add, 1, "x")
        await cluster.call(group, A, moves_late, 1)
        for email, found in (("x", []), ("amid", []), ("last", [[["a", 1], 1]])):
            assert await cluster.call(ask, "", by_email, email) == found, email


@pytest.mark.parametrize(
    ("what", "words"),
    [
        ("no index", "has no app-wide index 'by_name'"),
        ("missing", "names a value for each of its columns, city, born: got city"),
        ("none", "rows with email=None are not in the app-wide index"),
        ("type", "column 'email' is of type str"),
        ("table", "takes a table"),
        ("ends", "first= is a number of rows"),
        ("both", "cannot stand together"),
    ],
)
async def test_wrong_look_ups_are_refused(what: str, words: str) -> None:
    async with embedded_cluster(app) as cluster:
        assert words in await failure(cluster, ask, "", wrong, what)


async def test_a_look_up_must_be_awaited_and_partition_functions_make_none() -> None:
    async with embedded_cluster(app) as cluster:
        assert "did not await its ctx.find" in await failure(cluster, ask, "", forgets)
        assert "find in the caller of ctx.call_all" in await failure(cluster, ask, "", asks_partitions)
        assert "at most 2048 bytes" in await failure(cluster, group, A, add, 1, "x" * 3000)


def test_the_entries_are_what_the_rows_imply() -> None:
    reference = SerialReference(app)
    steps: list[tuple[tuple[str, int], str, list[Any]]] = [
        (A, "add", [1, "x"]),
        (B, "add", [1, "y", "there"]),
        (A, "put", [1, "z"]),
        (B, "put", [2, "x"]),
        (A, "moves_late", [1]),
    ]
    for number, (key, function, args) in enumerate(steps):
        request = Request(str(number), "group", list(key), function, msgspec.msgpack.encode(args))
        assert reference.run(number, 0, request).error is None
    rows: dict[Any, bytes] = {key: data for (name, key), data in reference.state.items() if name == users.full_name}
    for index in users.consequences:
        assert isinstance(index, AppIndex)
        assert index.entries is not None
        entries = {key: data for (name, key), data in reference.state.items() if name == index.entries.full_name}
        assert entries == index.derived(rows.items()) != {}


def test_declarations_that_cannot_work_are_refused() -> None:
    class Row(msgspec.Struct):
        id: int
        price: float = 0.0

    indexes = [Index("a", equal="price", scope="app"), Index("b", order="id", scope="app")]
    with pytest.raises(ConfigurationError) as caught:
        Operator("wrong").table("rows", Row, key="id", indexes=[*indexes, Index("b", equal="id", scope="app")])
    text = str(caught.value)
    assert "column 'price' is of type float" in text
    assert "index 'b', scope=\"app\": it needs equal=: the rows of a value stand where" in text
    assert "two indexes are named 'b'" in text
    with pytest.raises(ConfigurationError, match="5 app-wide indexes; the limit is 4"):
        Operator("many").table(
            "rows", Row, key="id", indexes=[Index(f"i{n}", equal="id", scope="app") for n in range(5)]
        )


def test_an_index_is_found_by_its_name() -> None:
    assert app_index(users, "by_city").operator.name == "group*users*by_city(city,born)"


def test_a_package_has_the_index() -> None:
    again = unpack_code(pack_code(app).payload)
    assert list(again.internal_tables) == list(app.internal_tables)
    assert describe(again).operators["group"].tables["users"].indexes == [
        "by_email: equal=email; unique over the app",
        "by_city: equal=city, born; over the app",
    ]


def test_explanations_name_the_calls() -> None:
    assert users.explain(by="by_email", email="x") == (
        "group/users: email='x'\n"
        "  looks up the index 'by_email', which is over the app: one call, of the entity of the value\n"
        "  gives the keys of the rows, in their order; the rows are read by calls to their entities\n"
        "  conflicts with transactions that insert, delete or change a row that has the value, or had it"
    )
    with pytest.raises(BadQuery, match="names a value for each of its columns"):
        users.explain(by="by_city", city="x")
