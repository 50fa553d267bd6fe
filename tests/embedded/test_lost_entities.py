"""An app that would not find what is stored is refused, with words, and nothing is changed."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from styx.embedded_engine import app_record
from styx.errors import ConfigurationError, EngineFailed
from tests.embedded.app_files import Edited, tree

pytestmark = pytest.mark.anyio
KEYS = [f"k{number}" for number in range(12)]


async def _fill(edited: Edited, declared: str, *, end: str = "close", number: bool = False) -> None:
    client = edited.open(edited.app(declared))
    async with client:
        for n, key in enumerate(KEYS):
            await client.call("acc", n if number else key, "put", n)
        if end == "crash":
            client.crash()


async def _refused(edited: Edited, declared: str, **options: object) -> str:
    before = tree(edited.data)
    with pytest.raises(ConfigurationError) as refused:
        async with edited.open(edited.app(declared), **options):
            pass
    assert tree(edited.data) == before
    return str(refused.value)


@pytest.mark.parametrize(
    ("before", "after", "words"),
    [
        ("Operator('acc', 4)", "Operator('acc', 3)", "its n_partitions has changed from 4 to 3"),
        ("Operator('acc')", "Operator('acc', 8)", "its n_partitions has changed from 4 to 8"),
        ("Operator('acc')", "Operator('acc', key_type=int)", "its key_type has changed from str to int"),
        (
            "Operator('acc')",
            "Operator('acc', partition_key=lambda key: key[:1])",
            "it has a partition_key now",
        ),
        (
            "Operator('acc', partition_key=lambda key: key[1:])",
            "Operator('acc')",
            "it has no partition_key any more",
        ),
        (
            "Operator('acc', partition_key=lambda key: key[1:])",
            "Operator('acc', partition_key=lambda key: key[:1])",
            "its partition_key has changed",
        ),
    ],
)
async def test_what_moves_entities_is_refused(edited: Edited, before: str, after: str, words: str) -> None:
    await _fill(edited, before)
    text = await _refused(edited, after)
    assert f"operator 'acc' has entities, and {words}: they would not be found again" in text
    assert "Nothing was changed" in text
    assert "Keep it as it was" in text
    assert "'k" in text
    async with edited.open(edited.app(before)) as client:
        assert {key: client.entity("acc", key) for key in KEYS} == {key: n for n, key in enumerate(KEYS)}


async def test_the_example_says_where_the_entity_is_and_where_it_would_be_looked_for(edited: Edited) -> None:
    await _fill(edited, "Operator('acc', 4)")
    text = await _refused(edited, "Operator('acc', 3)")
    assert "is stored in slot" in text
    assert "would be looked for in slot" in text


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("Operator('acc')", "Operator('acc', 4)"),
        ("Operator('acc', partition_key=lambda key: key[:1])", "Operator('acc', partition_key=lambda k: k[0])"),
        ("Operator('acc', key_type=int)", "Operator('acc', key_type=int, partition_key=lambda key: key)"),
    ],
)
async def test_what_moves_nothing(edited: Edited, before: str, after: str) -> None:
    number = "int" in before
    await _fill(edited, before, number=number)
    if "partition_key" in after and "partition_key" not in before:
        assert "it has a partition_key now" in await _refused(edited, after)
        return
    async with edited.open(edited.app(after)) as client:
        assert [client.entity("acc", key) for key in KEYS] == list(range(12))


async def test_an_operator_without_entities_may_change(edited: Edited) -> None:
    await _fill(edited, "Operator('acc', 4)")
    empty = "acc = Operator('acc', 4)\nother = Operator('other', {})\napp = App('bank', [acc, other])"
    async with edited.open(edited.source(empty.format(2))):
        pass
    async with edited.open(edited.source(empty.format(3))):
        pass
    async with edited.open(edited.source("acc = Operator('acc', 4)\napp = App('bank', [acc])")) as client:
        assert client.entity("acc", "k3") == 3


async def test_a_renamed_operator(edited: Edited) -> None:
    await _fill(edited, "Operator('acc')")
    text = await _refused(edited, "Operator('account')")
    assert "the data has 12 entities, 'k" in text
    assert "of operator 'acc', which app 'bank' does not have any more" in text
    assert "If it has been renamed to 'account', name it 'acc' again" in text


async def test_a_removed_operator_needs_no_functions(edited: Edited) -> None:
    await _fill(edited, "Operator('acc')")
    without = "other = Operator('other')\nthird = Operator('third')\napp = App('bank', [other, third])"
    before = tree(edited.data)
    with pytest.raises(ConfigurationError, match="delete its entities with the code from before") as refused:
        async with edited.open(edited.source(without)):
            pass
    assert "renamed" not in str(refused.value)
    assert tree(edited.data) == before
    kept = without.replace("app = ", "acc = Operator('acc')\napp = ").replace("[other", "[acc, other")
    async with edited.open(edited.source(kept)) as client:
        assert len(client.state()) == 12


@pytest.mark.parametrize("end", ["close", "crash"])
async def test_entities_that_are_only_behind_the_snapshot_count(edited: Edited, end: str) -> None:
    await _fill(edited, "Operator('acc')", end=end)
    with pytest.raises(ConfigurationError, match="does not have any more"):
        async with edited.open(edited.app("Operator('account')")):
            pass
    async with edited.open(edited.app("Operator('acc')")) as client:
        assert len(client.state()) == 12


HASHED = f"""
import asyncio, sys
sys.path.insert(0, ".")
import styx
acc = styx.Operator("acc", partition_key=lambda key: hash(key))
@acc.register
async def put(ctx: styx.Context, value: int) -> int:
    await ctx.put(value)
    return value
async def main() -> None:
    async with styx.embedded(styx.App("bank", [acc]), "data") as client:
        if sys.argv[1] != "open":
            for key in {KEYS!r}:
                await client.call("acc", key, "put", 1)
        if sys.argv[1] == "crash":
            client.crash()
        print("served")
asyncio.run(main())
"""


def _hashed(directory: Path, seed: int, what: str) -> subprocess.CompletedProcess[str]:
    (directory / "hashed.py").write_text(HASHED)
    environment = {"PYTHONHASHSEED": str(seed), "PYTHONPATH": str(Path(__file__).parents[2]), "PATH": ""}
    words = [sys.executable, "hashed.py", what]
    return subprocess.run(words, cwd=directory, env=environment, capture_output=True, text=True, check=False)


@pytest.mark.slow
@pytest.mark.parametrize("end", ["close", "crash"])
def test_a_partition_key_that_differs_by_process(tmp_path: Path, end: str) -> None:
    assert _hashed(tmp_path, 1, end).stdout == "served\n"
    before = tree(tmp_path / "data")
    refused = _hashed(tmp_path, 2, "open")
    assert refused.stdout == ""
    assert "operator 'acc'" in refused.stderr
    assert "hash() of a str" in refused.stderr
    assert tree(tmp_path / "data") == before
    assert _hashed(tmp_path, 1, "open").stdout == "served\n"


async def test_stored_keys_are_looked_at_where_no_sample_shows_it(edited: Edited) -> None:
    """One key of all that goes elsewhere is found."""
    odd = "Operator('acc', partition_key=lambda key: 'k0' if key == 'k7' else key)"
    await _fill(edited, "Operator('acc', partition_key=lambda key: key)")
    slot_of = edited.app(odd).operators["acc"].slot_of
    assert slot_of("k7", 4) != edited.app().operators["acc"].slot_of("k7", 4)
    text = await _refused(edited, odd)
    assert "'k7' is stored in slot" in text
    assert "partition_key or n_partitions has changed, or partition_key is not the same in every process" in text


async def test_a_directory_from_before_there_were_records(edited: Edited) -> None:
    await _fill(edited, "Operator('acc', 4)")
    _forget_the_app(edited)
    app = edited.app("Operator('acc', 4)")
    async with edited.open(app) as client:
        assert len(client.state()) == 12
        assert app_record.versions(client.engine._storage.store) == [2]
    assert "its n_partitions has changed from 4 to 2" in await _refused(edited, "Operator('acc', 2)")


async def test_of_such_a_directory_the_stored_keys_alone_tell(edited: Edited) -> None:
    await _fill(edited, "Operator('acc', 4)")
    _forget_the_app(edited)
    with pytest.raises(ConfigurationError, match=r"stored in slot \d and would be looked for in slot \d"):
        async with edited.open(edited.app("Operator('acc', 3)")):
            pass
    async with edited.open(edited.source("app = App('bank', [Operator('other')])")) as client:
        assert client.state() == {}, "what no operator has is left out"
    async with edited.open(edited.app("Operator('acc', 4)")) as client:
        assert len(client.state()) == 12


async def test_a_damaged_record_is_named(edited: Edited) -> None:
    await _fill(edited, "Operator('acc', 4)")
    record = next((edited.data / "objects" / "apps").iterdir())
    record.write_bytes(record.read_bytes()[:-3] + b"xyz")
    with pytest.raises(EngineFailed, match=f"'apps/{record.name}' is damaged"):
        async with edited.open(edited.app("Operator('acc', 4)")):
            pass


def _forget_the_app(edited: Edited) -> None:
    for record in (edited.data / "objects" / "apps").iterdir():
        record.unlink()
