"""Sequences outlive crashes, snapshots and other versions of the app, and an app that would lose them is refused."""

from __future__ import annotations

import pytest

from styx.errors import ConfigurationError
from tests.embedded.app_files import Edited, tree

pytestmark = pytest.mark.anyio
FUNCTIONS = """
async def bill(ctx: Context) -> int:
    return await ctx.sequence("bills").next()

async def put(ctx: Context, value: Any) -> None:
    await ctx.put(value)
"""
KEYS = [f"k{number}" for number in range(12)]


async def _number(edited: Edited, declared: str = "Operator('acc')", *, end: str = "close") -> list[int]:
    client = edited.open(edited.app(declared, FUNCTIONS))
    async with client:
        numbers = [await client.call("acc", key, "bill") for key in KEYS]
        if end == "crash":
            client.crash()
    return numbers


@pytest.mark.parametrize("end", ["close", "crash"])
async def test_numbers_go_on_after_a_start(edited: Edited, end: str) -> None:
    for expected in (1, 2, 3):
        assert await _number(edited, end=end) == [expected] * len(KEYS)


@pytest.mark.parametrize(
    ("after", "words"),
    [
        ("Operator('acc', 3)", "n_partitions has changed"),
        ("Operator('acc', key_type=int)", "key_type has changed from str to int"),
        ("Operator('acc', partition_key=lambda key: key[:1])", "it has a partition_key now"),
        ("Operator('other')", "which app 'bank' does not have any more"),
    ],
)
@pytest.mark.parametrize("end", ["close", "crash"])
async def test_an_app_that_would_lose_them_is_refused(edited: Edited, end: str, after: str, words: str) -> None:
    """They are all that there is: no entity has a state."""
    await _number(edited, end=end)
    before = tree(edited.data)
    with pytest.raises(ConfigurationError, match=words) as refused:
        async with edited.open(edited.app(after, FUNCTIONS)):
            pass
    assert "Nothing was changed" in str(refused.value)
    if end == "close":
        assert tree(edited.data) == before
    assert await _number(edited) == [2] * len(KEYS)


async def test_another_type_of_the_state_leaves_them_alone(edited: Edited) -> None:
    await _number(edited)
    async with edited.open(edited.app("Operator('acc')", FUNCTIONS)) as client:
        await client.call("acc", KEYS[0], "put", {"n": 1})
    struct = "class Account(msgspec.Struct):\n    count: int\n"
    declared = "Operator('acc', state_type=Account, migrate=lambda old: {'count': old['n']})"
    async with edited.open(edited.app(declared, FUNCTIONS, more=struct)) as client:
        assert client.entity("acc", KEYS[0]).count == 1
        assert [await client.call("acc", key, "bill") for key in KEYS] == [2] * len(KEYS)
        assert len(client.state()) == 1


async def test_keys_of_two_parts_and_a_partition_key(edited: Edited) -> None:
    declared = "Operator('acc', key_type=(str, int), partition_key=lambda key: key[0])"
    for expected in (1, 2):
        async with edited.open(edited.app(declared, FUNCTIONS)) as client:
            assert [await client.call("acc", ("a", n), "bill") for n in range(5)] == [expected] * 5
