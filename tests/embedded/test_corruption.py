"""Damage: an older snapshot and a longer replay give the same state, or the start is refused and the file named."""

from __future__ import annotations

from pathlib import Path

import pytest

import styx
from styx.errors import EngineFailed
from styx.model.limits import Limits
from styx.store.directory import DirectoryStore
from tests.embedded.ledger_app import app

pytestmark = pytest.mark.anyio

State = dict[tuple[str, object], object]


async def _two_snapshots(path: Path) -> State:
    async with styx.embedded(app, path, snapshot_interval=1000) as client:
        for _ in range(3):
            for number in range(20):
                await client.call("ledger", f"k{number}", "add", number)
            assert await client.engine.snapshot()
        await client.call("ledger", "k1", "add", 1000)
        state = client.state()
        client.crash()
    return state


def _damage(path: Path, name: str) -> None:
    file = path / "objects" / name
    data = bytearray(file.read_bytes())
    data[len(data) // 2] ^= 1
    file.write_bytes(data)


def _names(path: Path, prefix: str) -> list[str]:
    """Newest first."""
    names = DirectoryStore(path / "objects").list(prefix)
    return sorted(names, key=lambda name: name.rsplit("/")[-1], reverse=True)


def _content(path: Path) -> dict[str, bytes]:
    store = DirectoryStore(path / "objects")
    return {name: store.get(name) for name in store.list("")}


@pytest.mark.parametrize("what", ["manifests/", "slots/"])
async def test_a_damaged_newest_snapshot_costs_nothing(tmp_path: Path, what: str) -> None:
    state = await _two_snapshots(tmp_path)
    damaged = _names(tmp_path, what)[0]
    _damage(tmp_path, damaged)
    async with styx.embedded(app, tmp_path, snapshot_interval=1000) as client:
        assert client.state() == state
        assert damaged in client.engine.counters.load_failures[0]
        # From here on it is as if nothing had happened.
        await client.call("ledger", "k2", "add", 5)
        assert await client.engine.snapshot()
        state = client.state()
        client.crash()
    async with styx.embedded(app, tmp_path) as client:
        assert client.state() == state
        assert not client.engine.counters.load_failures


async def test_a_missing_object_is_as_bad_as_a_damaged_one(tmp_path: Path) -> None:
    state = await _two_snapshots(tmp_path)
    (tmp_path / "objects" / _names(tmp_path, "slots/")[0]).unlink()
    async with styx.embedded(app, tmp_path) as client:
        assert client.state() == state


@pytest.mark.parametrize("what", ["manifests/", "slots/"])
async def test_two_damaged_snapshots_are_refused_and_nothing_is_changed(tmp_path: Path, what: str) -> None:
    state = await _two_snapshots(tmp_path)
    intact = _content(tmp_path)
    # The oldest object belongs to both manifests, the newest manifest to one.
    damaged = _names(tmp_path, what)[:2] if what == "manifests/" else [_names(tmp_path, what)[-1]]
    for name in damaged:
        _damage(tmp_path, name)
    before = _content(tmp_path)
    for _ in range(2):
        with pytest.raises(EngineFailed) as refused:
            async with styx.embedded(app, tmp_path):
                raise AssertionError
        for name in damaged:
            assert name in str(refused.value)
        assert "Restore the whole data directory" in str(refused.value)
        assert _content(tmp_path) == before
    for name in damaged:
        (tmp_path / "objects" / name).write_bytes(intact[name])
    async with styx.embedded(app, tmp_path) as client:
        assert client.state() == state


async def test_a_damaged_log_is_refused_and_named(tmp_path: Path) -> None:
    async with styx.embedded(app, tmp_path, snapshot_interval=1000) as client:
        for number in range(50):
            await client.call("ledger", f"k{number}", "add", number)
    file = tmp_path / "log.db"
    data = bytearray(file.read_bytes())
    for place in range(8192, len(data), 512):
        data[place] ^= 0x55
    file.write_bytes(data)
    with pytest.raises(EngineFailed, match=r"log\.db"):
        async with styx.embedded(app, tmp_path):
            raise AssertionError


async def test_a_long_log_is_replayed_in_pieces(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("styx.embedded_engine.recovery.FEED_RECORDS", 3)
    async with styx.embedded(app, tmp_path, limits=Limits(epoch_transactions_max=7)) as client:
        waiting = [client.submit("ledger", f"k{number % 3}", "add") for number in range(500)]
        for reply in waiting:
            await reply
        client.crash()
    async with styx.embedded(app, tmp_path, limits=Limits(epoch_transactions_max=7)) as client:
        assert sum(client.state().values()) == 500
