"""What `styx status` shows for what a coordinator says."""

import json
from collections.abc import Callable

import pytest
from rich.console import Console

from styx.cli import facts_client
from styx.cli.status_table import slots_text, status_lines
from styx.cluster.coordinator.status import SnapshotStatus, Status, WorkerStatus
from tests.cli.conftest import Styx


def worker(name: str, slots: list[int], member: bool = True, heard_s: float | None = 0.1) -> WorkerStatus:
    return WorkerStatus(
        number=1, name=name, address="h:1", member=member, slots=slots, heard_s=heard_s, step="idle", memory=2**21
    )


def leaving(name: str, member: bool) -> WorkerStatus:
    status = worker(name, [0] if member else [], member)
    status.leaving = True
    return status


def snapshot(epoch: int | None = 7, age_s: float | None = 3.0, failing_s: float | None = None) -> SnapshotStatus:
    return SnapshotStatus(
        epoch=epoch, age_s=age_s, completed=2, failures=1, failing_s=failing_s, store_problem="the store is away"
    )


RUNNING = Status(
    app="bank",
    waiting=None,
    phase="running",
    generation=2,
    epoch=9,
    epochs_per_second=3.25,
    transactions_per_second=1234.5,
    n_slots=4,
    workers_wanted=2,
    app_version=3,
    snapshot=snapshot(),
    workers=[worker("w1", [0, 1, 3]), worker("w3", [], member=False), worker("w2", [2], heard_s=None)],
    gateways=["g1", "g2"],
)


def shown(status: Status) -> str:
    console = Console(width=120)
    with console.capture() as captured:
        console.print(status_lines(status))
    return captured.get()


def changed(**values: object) -> Status:
    status = Status(**{name: getattr(RUNNING, name) for name in RUNNING.__struct_fields__})
    for name, value in values.items():
        setattr(status, name, value)
    return status


def test_a_running_cluster() -> None:
    text = shown(RUNNING)
    for line in (
        "app       bank, version 3",
        "state     running, generation 2",
        "speed     epoch 9, 3.2 epochs/s, 1,234 transactions/s",
        "snapshot  epoch 7, 3 s ago; 2 stored, 1 failed",
        "workers   2 share 4 slots, 1 stand by",
        "gateways  g1, g2",
    ):
        assert line in text
    rows = [line.split()[0] for line in text.splitlines() if line.strip().startswith("w") and "workers" not in line]
    assert rows == ["worker", "w1", "w2", "w3"]
    assert "0-1, 3" in text
    assert "failing" not in text


@pytest.mark.parametrize(
    ("status", "text"),
    [
        (Status(app="bank", waiting="no Kafka"), "the coordinator waits: no Kafka"),
        (changed(phase="waiting", phase_text="too few"), "state     waiting: too few"),
        (changed(app_version=0), "no version deployed yet"),
        (changed(deploying="storing"), "a deployment is under way: storing"),
        (changed(workers_wanted=3), "2 share 4 slots, 3 wanted"),
        (changed(workers_auto=True), "2 share 4 slots (auto), 1 stand by"),
        (changed(workers=[leaving("w1", True), leaving("w2", False)]), "0 stand by, 2 leaving"),
        (changed(workers=[leaving("w1", True)]), "0, leaving"),
        (changed(workers=[leaving("w1", False)]), "has left"),
        (changed(workers=[leaving("w1", False)], workers_wanted=2), "w1 had to leave: stop it, and start 2 more"),
        (changed(snapshot=snapshot(failing_s=30.0)), "snapshots are failing since 30 s: the store is away"),
        (changed(snapshot=snapshot(age_s=None)), "epoch 7, from before this coordinator"),
        (changed(snapshot=snapshot(epoch=None)), "none yet"),
        (changed(snapshot=snapshot(age_s=600.0)), "10 min ago"),
        (
            changed(patch_rounds=1_200, given_up=2),
            "patches   1,200 rounds of lock phases, 2 transactions given up",
        ),
        (changed(refused=3), "strangers 3 connections refused; the logs say more"),
        (
            changed(
                workers=[WorkerStatus(number=1, name="w", address="", member=True, slots=[], poison=2, strangers=1)]
            ),
            "strangers 2 undecodable requests skipped, 1 records of others passed over",
        ),
        (
            changed(
                workers=[
                    WorkerStatus(
                        number=n, name="w", address="", member=True, slots=[], carried={"a.f": 2, f"a.g{n}": n}
                    )
                    for n in (1, 1_000)
                ]
            ),
            "carried   more than twice: a.g1000 1,000, a.f 4, a.g1 1; the workers' logs say what changes, and what",
        ),
        (
            changed(
                workers=[
                    WorkerStatus(number=n, name="w", address="", member=True, slots=[], left={"seat.take": 600})
                    for n in (1, 2)
                ]
            ),
            "not local seat.take 1,200 times; each costs an epoch more",
        ),
    ],
)
def test_what_else_is_told(status: Status, text: str) -> None:
    assert text in shown(status)


def test_who_stands_by_is_at_no_step() -> None:
    spare = WorkerStatus(number=2, name="spare", address="", member=False, slots=[], step="loading", heard_s=0.1)
    text = shown(changed(workers=[spare]))
    assert "stands by" in text
    assert "loading" not in text


@pytest.mark.parametrize(
    ("slots", "text"), [([], ""), ([4], "4"), ([0, 1, 2], "0-2"), ([5, 0, 2, 3], "0, 2-3, 5"), ([1, 0], "0-1")]
)
def test_slots(slots: list[int], text: str) -> None:
    assert slots_text(slots) == text


def test_command_prints_json_or_text_and_tells_by_its_exit_code(styx: Styx, monkeypatch: pytest.MonkeyPatch) -> None:
    answers = [RUNNING, RUNNING, Status(app="bank", waiting="no Kafka")]
    fetch: Callable[[str, str | None], Status] = lambda *_: answers.pop(0)  # noqa: E731 - typed
    monkeypatch.setattr(facts_client, "fetch_status", fetch)
    ran = styx("status", "--json", "--url", "http://h")
    assert (ran.status, json.loads(ran.out)["workers"][0]["slots"]) == (0, [0, 1, 3])
    ran = styx("status", "--url", "http://h")
    assert ran.status == 0
    assert "stands by" in ran.out
    assert styx("status", "--url", "http://h").status == 1
