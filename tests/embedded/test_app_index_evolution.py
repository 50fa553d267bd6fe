"""An app-wide index that comes, changes or goes between two starts: its entries are those of the rows, however the run
before has ended.
"""

from __future__ import annotations

import pytest

from styx import App
from styx.client.embedded import EmbeddedClient
from styx.errors import ConfigurationError, TransactionAborted
from styx.model.app_index import AppIndex
from styx.reports.mistakes import read_page
from styx.state.table import NEWEST
from tests.embedded.app_files import Edited

pytestmark = pytest.mark.anyio
ENDS = ["close", "crash"]
UNIQUE = ", indexes=[Index('by_email', equal='email', unique=True, scope='app')]"
BY_CITY = ", indexes=[Index('by_city', equal='city', scope='app')]"
KEYS = [f"g{number}" for number in range(12)]


def app_of(edited: Edited, more: str = "", *, name: str = "users", city: str = "here") -> App:
    return edited.source(
        "from styx import Index\n"
        "class Row(msgspec.Struct):\n    number: int\n    email: str = ''\n"
        f"    city: str = '{city}'\n"
        "group = Operator('group')\n"
        f"users = group.table('{name}', Row, key='number'{more})\n"
        "@group.register\nasync def put(ctx: Context, number: int, email: str) -> None:\n"
        "    await ctx.rows(users).put(Row(number, email))\n"
        "@group.register\nasync def find(ctx: Context, email: str) -> list[Any]:\n"
        "    return await ctx.find(users, 'by_email', email=email)\n"
        "@group.register\nasync def in_city(ctx: Context, city: str) -> list[Any]:\n"
        "    return await ctx.find(users, 'by_city', city=city)\n"
        "app = App('shop', [group])\n"
    )


async def store(client: EmbeddedClient, keys: list[str] = KEYS) -> None:
    for key in keys:
        await client.call("group", key, "put", 1, f"{key}@x")


def check_entries(client: EmbeddedClient, app: App) -> int:
    """Compares all stored entries with those that the rows imply; their number."""
    state = {
        entry: data
        for slot in client.engine.worker.slots.values()
        for entry, data in slot.state.entities(NEWEST).items()
    }
    checked = 0
    internal = {name for name, _ in state if "*" in name}
    assert internal <= {consequence.entries.full_name for _, consequence in app.entries() if consequence.entries}
    for table, consequence in app.entries():
        assert isinstance(consequence, AppIndex)
        assert consequence.entries is not None
        rows = [(key, data) for (name, key), data in state.items() if name == table.full_name]
        entries = {key: data for (name, key), data in state.items() if name == consequence.entries.full_name}
        assert entries == consequence.derived(rows)
        checked += len(entries)
    return checked


@pytest.mark.parametrize("end", ENDS)
async def test_an_index_comes_and_goes(edited: Edited, end: str) -> None:
    async with edited.open(app_of(edited)) as client:
        await store(client)
        if end == "crash":
            client.crash()
    app = app_of(edited, UNIQUE)
    async with edited.open(app) as client:
        assert check_entries(client, app) == 12
        assert await client.call("group", "k", "find", "g7@x") == [["g7", 1]]
        with pytest.raises(TransactionAborted, match="email='g7@x' already, which is unique in the app"):
            await client.call("group", "k", "put", 1, "g7@x")
        await client.call("group", "g7", "put", 1, "free")
        await client.call("group", "k", "put", 1, "g7@x")
        if end == "crash":
            client.crash()
    async with edited.open(app_of(edited, UNIQUE)) as client:
        assert check_entries(client, app) == 13
        if end == "crash":
            client.crash()
    app = app_of(edited)
    async with edited.open(app) as client:
        assert check_entries(client, app) == 0
        await client.call("group", "g1", "put", 1, "moved")
    app = app_of(edited, UNIQUE)
    async with edited.open(app) as client:
        assert check_entries(client, app) == 13
        assert await client.call("group", "k", "find", "moved") == [["g1", 1]]


async def test_entries_follow_a_renamed_table(edited: Edited) -> None:
    async with edited.open(app_of(edited, BY_CITY)) as client:
        await store(client)
    app = app_of(edited, BY_CITY + ", was='users'", name="people", city="there")
    async with edited.open(app) as client:
        assert check_entries(client, app) == 12
        assert len(await client.call("group", "k", "in_city", "here")) == 12


@pytest.mark.parametrize("end", ENDS)
async def test_values_that_stand_twice_are_refused(edited: Edited, end: str) -> None:
    async with edited.open(app_of(edited)) as client:
        await store(client)
        for key in KEYS:
            await client.call("group", key, "put", 2, "same")
        if end == "crash":
            client.crash()
    with pytest.raises(ConfigurationError) as caught:
        async with edited.open(app_of(edited, UNIQUE)):
            pass
    text = str(caught.value)
    assert "11 of 24 stored entities and rows do not fit" in text
    assert text.count("has the same values in the unique index 'by_email'") == 10
    app = app_of(edited)
    async with edited.open(app) as client:
        await client.call("group", "g3", "put", 2, "other")


async def test_entries_stand_under_the_name_of_their_index_and_are_not_the_app_s(edited: Edited) -> None:
    async with edited.open(app_of(edited, UNIQUE)) as client:
        await store(client)
        stored = {name for name, _ in client.engine.encoded_state()}
        assert stored == {"group/users", "group*users*by_email(email)/entries"}
        assert {name for name, _ in client.state()} == {"group/users"}


async def test_a_violation_that_a_function_of_the_engine_s_finds_is_a_mistake_without_its_name(edited: Edited) -> None:
    async with edited.open(app_of(edited, UNIQUE)) as client:
        await client.call("group", "g1", "put", 1, "ann")
        with pytest.raises(TransactionAborted, match="UniqueViolation"):
            await client.call("group", "g2", "put", 1, "ann")
        _, (mistake,) = read_page(client.engine.reports.mistakes.page())
        assert (mistake.operator, mistake.function, mistake.type) == (None, None, "UniqueViolation")
        assert mistake.text().startswith(
            "aborted: UniqueViolation: row 1 of table group/users of group['g2']: row 1 of"
        )
        assert "*" not in mistake.text()
