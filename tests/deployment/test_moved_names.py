"""Packages that name modules of styx as an earlier release had them."""

from __future__ import annotations

import asyncio
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import pytest

import styx
from styx import App, errors
from styx.deployment import moved_names
from styx.deployment.moved_names import MOVED, MOVED_ATTRIBUTES, present_name, present_place, with_moved
from styx.deployment.package import pack, unpack
from styx.deployment.package_format import PackageRefused, seal, unseal
from styx.deployment.unpickler import AppUnpickler
from tests.deployment.conftest import Load
from tests.deployment.earlier_release import as_before, names_in

SECRET = b"a secret of this test"
USER = """
import styx
from styx import App, Operator
from styx.model import limits as own_limits
from styx.model.context import Context
from styx.model.limits import Limits

LIMITS = Limits(request_bytes_max=1000)
thing = Operator("thing")

def kind_of(ctx: Context) -> str:
    return Context.__name__

@thing.register
async def at_the_top(ctx: Context) -> list[object]:
    return [kind_of(ctx), LIMITS.request_bytes_max, own_limits.MIB, isinstance(LIMITS, Limits)]

@thing.register
async def by_attribute(ctx: Context) -> str:
    return styx.settled_types.__name__

@thing.register
async def inside(ctx: Context) -> list[str]:
    import styx.model.placement
    import styx.model.partitioning as key_space
    from styx.model import signature
    from styx.model.partitioning import KeyType
    return [styx.model.placement.__name__, key_space.__name__, signature.__name__, KeyType.__module__]

app = App("user", [thing])
"""
EXPECTED = [
    ["Context", 1000, 2**20, True],
    "styx.values.settled_types",
    ["styx.model.placement", "styx.model.partitioning", "styx.model.signature", "styx.model.partitioning"],
]
OLDER = """
from styx import App, Operator
thing = Operator("thing")

@thing.register
async def inside(ctx):
    import styx.placement
    import styx.key_space as key_space
    from styx import signature, limits as own_limits
    from styx.partitioning import KeyType
    return [styx.placement.__name__, key_space.__name__, signature.__name__, KeyType.__module__]

@thing.register
async def names_inside(ctx):
    import styx.log
    import styx.client.loop_thread as thread
    import styx.user_frames as frames
    from styx.client import embedded_sync
    from styx.entity_handle import EntityOfContext, EntityOfClient, EntityOfSyncClient
    from styx.log import MemoryLog
    from styx.placement import Placing, misplaced
    return [
        styx.log.Record.__name__, thread.LoopThread.__name__, embedded_sync.SyncEmbeddedClient.__name__,
        EntityOfContext.__name__, EntityOfClient.__name__, EntityOfSyncClient.__name__,
        MemoryLog.__name__, Placing.__name__, misplaced.__name__, frames.DECORATOR_LINES_MAX,
    ]

app = App("older", [thing])
"""
NAMES = [
    *["Record", "LoopThread", "SyncEmbeddedClient", "EntityOfContext", "EntityOfClient", "EntityOfSyncClient"],
    *["MemoryLog", "Operator", "misplaced", 50],
]
MERGED = {
    "styx.allocator": "HEAP_END_BYTES LARGE_BYTES OWN_SETTINGS return_large_blocks",
    "styx.call_spec": "CallSpec",
    "styx.client.embedded_sync": "SyncEmbeddedClient embedded_sync",
    "styx.client.entity_handle": "EntityOfClient",
    "styx.client.kafka_load": "LOAD_ATTEMPTS_MAX KafkaLoadTarget",
    "styx.client.loop_thread": "LoopThread",
    "styx.data_directory": "DataDirectory DataDirectoryInUse",
    "styx.garbage": "OLD_COLLECTIONS YOUNG_COLLECTIONS YOUNG_OBJECTS_MAX tune_collector",
    "styx.key_space": "KeySpace",
    "styx.log.writer": "COMMIT_RECORDS_MAX CHECKPOINT_BYTES Release Writer",
    "styx.made_call": "MadeCall",
    "styx.own_generators": "with_own_generators",
    "styx.patience": (
        "CLOSED_PATIENCE END_SECONDS PEER_SECONDS REPLAY_PATIENCE STOP_SECONDS STUCK_SECONDS_MAX alive_seconds_max "
        "end_seconds_max peer_silence_seconds stop_seconds_max"
    ),
    "styx.sets": "holds_set in_order",
}
"""Public names of modules that are parts of others now."""


def answers(app: App, *functions: str) -> list[Any]:
    async def ask() -> list[Any]:
        async with styx.embedded(app) as client:
            return [await client.call("thing", "k", function) for function in functions]

    return asyncio.run(ask())


def earlier_package(app: App) -> bytes:
    header, payload = unseal(pack(app, SECRET), SECRET)
    return seal(header, as_before(payload), SECRET)


@pytest.mark.parametrize("earlier", MOVED)
def test_each_module_is_where_the_table_says(earlier: str) -> None:
    assert find_spec(earlier) is None
    assert import_module(present_name(earlier)).__name__ == MOVED[earlier]


@pytest.mark.parametrize("earlier", MERGED)
def test_what_a_merged_module_had_is_where_the_table_says(earlier: str) -> None:
    module = import_module(present_name(earlier))
    assert [name for name in MERGED[earlier].split() if not hasattr(module, name)] == []


@pytest.mark.parametrize("earlier", MOVED_ATTRIBUTES)
def test_a_name_that_has_left_its_module_is_found_in_it(earlier: str) -> None:
    module, _, name = earlier.rpartition(".")
    present = import_module(present_name(module))
    assert not hasattr(present, name)
    found = AppUnpickler(b"").find_class(module, name)
    assert found is getattr(with_moved(module, present), name)
    assert f"{present_place(module, name)[0]}.{getattr(found, '__name__', name)}" == MOVED_ATTRIBUTES[earlier]


def test_a_name_inside_of_a_class_that_has_moved() -> None:
    assert present_place("styx.log", "MemoryLog.bounds") == ("styx.log.memory", "MemoryLog.bounds")


def test_names_that_nothing_has_moved_from_stay() -> None:
    assert present_name("styx.errors") == "styx.errors"
    assert present_place("styx.errors", "StyxError") == ("styx.errors", "StyxError")
    assert with_moved("styx.errors", errors) is errors


def test_a_package_of_an_earlier_release_runs(load: Load) -> None:
    package = earlier_package(load({"user.py": USER}, "user").app)
    texts = names_in(unseal(package, SECRET)[1])
    assert {"styx.context", "styx.limits"} <= texts
    assert not texts & set(MOVED.values())
    assert answers(unpack(package, SECRET), "at_the_top", "by_attribute") == EXPECTED[:2]


def test_without_the_table_it_does_not(load: Load, monkeypatch: pytest.MonkeyPatch) -> None:
    package = earlier_package(load({"user.py": USER}, "user").app)
    monkeypatch.setattr(moved_names, "MOVED", {})
    with pytest.raises(PackageRefused, match=r"No module named 'styx\.\w+'"):
        unpack(package, SECRET)


@pytest.mark.parametrize("name", ["user", "older"])
def test_imports_that_its_functions_make(load: Load, name: str) -> None:
    app = load({"user.py": USER, "older.py": OLDER}, name).app
    assert answers(unpack(pack(app, SECRET), SECRET), "inside") == EXPECTED[2:]
    assert answers(unpack(earlier_package(app), SECRET), "inside") == EXPECTED[2:]


def test_names_that_its_functions_import(load: Load) -> None:
    app = load({"older.py": OLDER}, "older").app
    assert answers(unpack(pack(app, SECRET), SECRET), "names_inside") == [NAMES]
