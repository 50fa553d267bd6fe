"""The judge on clusters of real processes: with faults it finds nothing; workers that overlook conflicts are caught."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from proof.cluster.cluster import ClusterOptions, ClusterUnderTest
from proof.judge import adya
from proof.judge.__main__ import judge, main
from proof.judge.claimed_order import ids_of, problems, shared_ids
from proof.judge.cluster_command import APP
from proof.judge.counted import read_metrics
from proof.judge.on_cluster import FAULTS, OnCluster, Plan, Struck, record_on_cluster
from proof.judge.recorded import KINDS
from proof.judge.rows.verdict import check_rows
from tests.plain_form import plain_form
from tests.real_services import RealKafka, RealMinio

OVERLOOKING = "tests.proof.judge.overlooking_worker"
LETS_PHANTOMS_IN = "tests.proof.judge.rows.overlooking_worker"


@pytest.fixture(scope="module")
def kafka(kafka_of_its_own: RealKafka) -> RealKafka:
    return kafka_of_its_own


def recorded_on(
    kafka: RealKafka, minio: RealMinio, folder: Path, plan: Plan, **options: Any
) -> tuple[OnCluster, list[Struck]]:
    name = f"judge-{uuid4().hex}"
    cluster_options = ClusterOptions(
        app=APP,
        name=name,
        kafka=kafka.bootstrap,
        store=name,
        s3_endpoint=f"http://{minio.endpoint}",
        directory=folder / "cluster",
        **options,
    )
    struck: list[Struck] = []

    async def run() -> OnCluster:
        async with ClusterUnderTest(cluster_options) as cluster:
            return await record_on_cluster(cluster, kafka, plan, struck.append)

    recorded = asyncio.run(run())
    for each in recorded.histories:
        each.save(folder)
    return recorded, struck


@pytest.mark.slow
@pytest.mark.usefixtures("judge")
def test_a_cluster_is_strictly_serializable_in_the_order_that_it_claims_while_processes_die(
    kafka: RealKafka, minio: RealMinio, tmp_path: Path
) -> None:
    recorded, struck = recorded_on(kafka, minio, tmp_path, Plan())
    assert [each.fault for each in struck] == list(FAULTS)
    assert [each.model for each in recorded.histories] == list(KINDS)
    assert shared_ids(recorded.histories) == []
    assert recorded.counted.total["styx_lock_phase_transactions_total"] > 0
    for each in recorded.histories:
        assert each.count("ok") > 100
        assert all(each.commits_by_phase())
        if each.model == "rows":
            assert check_rows(each, tmp_path) == ([], [], (True, {}))
        else:
            assert len(ids_of(each)) > 5
            assert adya.check(each, tmp_path) == (True, {})
            assert problems(each) == []
    assert recorded.paired.problems == []
    assert recorded.paired.pairs > 100


@pytest.mark.slow
def test_of_two_that_want_one_value_exactly_one_commits_while_processes_die(
    kafka: RealKafka, minio: RealMinio, tmp_path: Path
) -> None:
    plan = Plan(models=(), faults=("worker", "coordinator"), pairs=600, pair_processes=20, all_pairs=True)
    recorded, struck = recorded_on(kafka, minio, tmp_path, plan, workers=3)
    assert {each.fault for each in struck} == {"worker", "coordinator"}
    done = recorded.paired
    assert (recorded.histories, done.pairs, done.unknown, done.problems) == ([], 600, [], [])
    assert done.beside > 100
    assert done.across > 50
    assert sum(map(len, done.held.values())) == 600


@plain_form
@pytest.mark.slow
@pytest.mark.usefixtures("judge")
def test_workers_that_overlook_conflicts_are_caught(kafka: RealKafka, minio: RealMinio, tmp_path: Path) -> None:
    plan = Plan(faults=(), seconds=200, transactions=500, keys=4)
    recorded, _ = recorded_on(kafka, minio, tmp_path, plan, worker_module=OVERLOOKING)
    for each in recorded.histories:
        if each.model == "rows":
            found, anomalies, verdict = check_rows(each, tmp_path)
            assert anomalies
        else:
            found, verdict = problems(each), adya.check(each, tmp_path)
        assert verdict.valid is False
        assert verdict.anomalies
        assert found
        assert judge(each, tmp_path) == 1


@plain_form
@pytest.mark.slow
@pytest.mark.usefixtures("judge")
def test_workers_that_let_phantoms_in_are_caught(kafka: RealKafka, minio: RealMinio, tmp_path: Path) -> None:
    plan = Plan(models=("rows",), faults=(), seconds=200, transactions=1_000, pairs=100, keys=4)
    recorded, _ = recorded_on(kafka, minio, tmp_path, plan, worker_module=LETS_PHANTOMS_IN)
    (rows,) = recorded.histories
    found, anomalies, verdict = check_rows(rows, tmp_path)
    assert found
    assert any("predicate" in each or "phantom" in each for each in anomalies)
    assert verdict.valid is False
    assert any("2 have committed" in each for each in recorded.paired.problems)


@pytest.mark.slow
@pytest.mark.usefixtures("judge")
def test_the_command_uses_a_broker_that_it_is_given(
    kafka: RealKafka, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["--kafka", kafka.bootstrap, "--faults", "worker", "--seconds", "1", "--model", "list-append"]
    assert main(["cluster", *words, "--client", "http", "--workers", "1", "--out", str(tmp_path)]) == 0
    logs, struck, counted, verdict = capsys.readouterr().out.splitlines()
    assert "logs are in" in logs
    assert struck.startswith("worker: an answer after ")
    assert counted.startswith("the processes counted: ")
    assert verdict.startswith("list-append: ")
    assert verdict.endswith(": strictly serializable; 0 problems with the claimed order")


def test_what_a_process_has_counted_is_summed_over_its_labels() -> None:
    page = (
        "# HELP styx_left_slot_transactions_total Transactions that left their slot.\n"
        'styx_left_slot_transactions_total{function="pair.near"} 3.0\n'
        'styx_left_slot_transactions_total{function="text.near"} 4.0\n'
        "styx_patch_rounds_total 5.0\n"
        "styx_slots 8.0\n"
    )
    assert read_metrics(page) == {"styx_left_slot_transactions_total": 7, "styx_patch_rounds_total": 5}


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (
            ["--faults", "worker,flood"],
            "there is no fault 'flood': choose of worker, coordinator, stop, kafka; or none",
        ),
        (["--kafka", "127.0.0.1:1"], "the fault kafka needs a broker of its own"),
        (["--s3-endpoint", "http://127.0.0.1:1"], "--s3-endpoint goes with --kafka"),
    ],
)
def test_what_the_command_cannot_do_is_told(
    words: list[str], message: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(adya, "find_adya", lambda: Path("adya"))
    assert main(["cluster", *words]) == 2
    assert message in capsys.readouterr().err
