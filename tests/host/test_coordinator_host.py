"""The coordinator's effects, each carried out over ports, and the events that they come back as."""

from __future__ import annotations

from typing import Any, get_args

import pytest

from styx.coordinator.coordinator import Coordinator
from styx.coordinator.events import (
    AppendMarker,
    AppendNote,
    DeleteManifest,
    DeleteObjects,
    Effect,
    Expel,
    FenceMembers,
    ManifestStored,
    MarkerAppended,
    MembersFenced,
    NoteAppended,
    Refuse,
    ReleaseLog,
    ReleaseWorker,
    Started,
    StateFound,
    StopEnded,
    StoreManifest,
    SweepObjects,
    TellWorker,
    WorkerJoined,
)
from styx.host.coordinator_host import CoordinatorHost
from styx.host.ports import Objects
from styx.protocol.manifest import Manifest, ObjectRef, SlotManifest, SlotPart
from styx.protocol.messages import Resume
from styx.schema.state_findings import StateFindings
from styx.sequencer.epoch_record import GenerationMarker, SnapshotNote
from styx.snapshot.manifest import manifest_name, read_manifests, write_manifest
from styx.snapshot.part import object_name
from tests.host.world import CoordinatorWorld

PART = object_name(0, 2, 9, 0)
MANIFEST = Manifest(2, 9, 4, [SlotManifest(SlotPart(0, 3, [], 7, {}, ObjectRef(PART, 4, b"", 0)), [])])


@pytest.fixture
def world() -> CoordinatorWorld:
    return CoordinatorWorld()


@pytest.fixture
def host(world: CoordinatorWorld) -> CoordinatorHost:
    return CoordinatorHost(
        Coordinator(2, 1), world, world, Objects(world.store, world.submit), world, world.given.append
    )


def test_every_effect_is_carried_out(host: CoordinatorHost) -> None:
    assert set(host._do) == set(get_args(Effect))


@pytest.mark.parametrize(
    ("effect", "asked"),
    [
        (TellWorker(3, Resume(2)), (3, Resume(2))),
        (Expel(3, "silent"), Expel(3, "silent")),
        (ReleaseWorker(3), ("go", 3)),
        (ReleaseLog(4, {0: 1}, {0: 1}, 6), ReleaseLog(4, {0: 1}, {0: 1}, 6)),
        (StateFound(5, StateFindings()), StateFound(5, StateFindings())),
        (StopEnded(stored=True), StopEnded(stored=True)),
        (Refuse("damaged"), "damaged"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_what_has_no_answer(host: CoordinatorHost, world: CoordinatorWorld, effect: Effect, asked: Any) -> None:
    host.do(effect)
    assert (world.asked, world.given) == ([asked], [])


@pytest.mark.parametrize(
    ("effect", "asked", "arguments", "answer"),
    [
        (FenceMembers(2), ("fence", 2), ([(7, 3)],), MembersFenced(2, [(7, 3)])),
        (AppendMarker(2, 9, 5), GenerationMarker(2, 9, 5), (), MarkerAppended(2)),
        (AppendNote(2, 9), SnapshotNote(2, 9), (), NoteAppended(2, 9)),
    ],
    ids=lambda value: type(value).__name__,
)
def test_what_is_appended_is_told_once_it_is_there(
    host: CoordinatorHost, world: CoordinatorWorld, effect: Effect, asked: Any, arguments: tuple[Any, ...], answer: Any
) -> None:
    host.do(effect)
    assert (world.asked, world.given) == ([asked], [])
    assert world.happens(*arguments) == [answer]


def test_a_manifest_is_stored_if_its_parts_are_there(host: CoordinatorHost, world: CoordinatorWorld) -> None:
    world.store.put(PART, b"part")
    host.do(StoreManifest(MANIFEST))
    assert (read_manifests(world.store), world.given) == (([], []), [])
    assert world.happens() == [ManifestStored(2, 9, True)]
    assert read_manifests(world.store) == ([MANIFEST], [])


def test_a_manifest_without_its_parts_is_none(host: CoordinatorHost, world: CoordinatorWorld) -> None:
    host.do(StoreManifest(MANIFEST))
    assert world.happens() == [ManifestStored(2, 9, False)]
    assert read_manifests(world.store) == ([], [])


def test_a_store_that_is_given_up_has_stored_nothing(host: CoordinatorHost, world: CoordinatorWorld) -> None:
    world.store.put(PART, b"part")
    world.store_fails = True
    host.do(StoreManifest(MANIFEST))
    assert world.happens() == [ManifestStored(2, 9, False)]


@pytest.mark.parametrize(
    ("effect", "gone"),
    [
        (DeleteManifest(2, 9), manifest_name(2, 9)),
        (DeleteObjects([PART, "missing"]), PART),
        (SweepObjects(frozenset(), 3), PART),
    ],
    ids=lambda value: type(value).__name__,
)
@pytest.mark.parametrize("fails", [False, True])
def test_what_is_deleted_is_asked_for_and_forgotten(
    host: CoordinatorHost, world: CoordinatorWorld, effect: Effect, gone: str, fails: bool
) -> None:
    world.store.put(PART, b"part")
    write_manifest(world.store, MANIFEST)
    world.store_fails = fails
    before = set(world.store.list(""))
    host.do(effect)
    assert world.happens() == []
    assert before - set(world.store.list("")) == (set() if fails else {gone})


def test_a_sweep_keeps_what_is_needed_and_what_is_newer(host: CoordinatorHost, world: CoordinatorWorld) -> None:
    kept, newer, unfinished = (object_name(0, generation, 9, 0) for generation in (1, 3, 2))
    for name in (kept, newer, unfinished):
        world.store.put(name, b"part")
    host.do(SweepObjects(frozenset([kept]), 3))
    world.happens()
    assert set(world.store.list("")) == {kept, newer}


def test_events_go_to_the_core_and_its_effects_to_the_ports(host: CoordinatorHost, world: CoordinatorWorld) -> None:
    host.step(Started(0, []))
    host.step(WorkerJoined(0))
    assert world.asked == [("fence", 1)]
