"""What a change of values changes: no more than it must, for what changes is restarted."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.kubernetes.charts import Manifest, RenderFailed, rendered
from tests.kubernetes.workloads import workloads

pytestmark = pytest.mark.slow


def _changed(helm: Path, *settings: str, chart: str = "styx", before: tuple[str, ...] = ()) -> dict[str, Manifest]:
    """What differs from the chart without these settings, but for Secrets, which are new in each rendering."""

    def objects(*all_settings: str) -> dict[str, Manifest]:
        words = [word for setting in all_settings for word in ("--set", setting)]
        return {f"{each['kind']}/{each['metadata']['name']}": each for each in rendered(helm, chart, *words)}

    first, second = objects(*before), objects(*before, *settings)
    names = first.keys() | second.keys()
    return {n: second.get(n, {}) for n in names if first.get(n) != second.get(n) and not n.startswith("Secret/")}


def _kinds(changed: dict[str, Manifest]) -> set[str]:
    return {name.partition("/")[0] + "/" + name.rpartition("-")[2] for name in changed}


def test_another_number_of_workers_restarts_nobody(helm: Path) -> None:
    changed = _changed(helm, "worker.replicas=4")
    assert _kinds(changed) == {"StatefulSet/worker"}
    (after,) = changed.values()
    (before,) = [each for each in rendered(helm, "styx") if each["kind"] == "StatefulSet"]
    assert after["spec"].pop("replicas") == 4
    assert {**before["spec"], "replicas": None} == {**after["spec"], "replicas": None}


def test_another_number_of_gateways_restarts_nobody(helm: Path) -> None:
    assert _kinds(_changed(helm, "gateway.replicas=3")) == {"Deployment/gateway"}


def test_another_image_changes_pods_and_nothing_that_cannot_be_changed(helm: Path) -> None:
    fixed = ("selector", "serviceName", "volumeClaimTemplates", "podManagementPolicy")
    before = {each["metadata"]["name"]: each for each in rendered(helm, "styx")}
    for after in _changed(helm, "image.tag=9.9").values():
        for field in fixed:
            if after["kind"] in ("Deployment", "StatefulSet"):
                assert after["spec"].get(field) == before[after["metadata"]["name"]]["spec"].get(field)


def test_another_app_restarts_the_coordinator_alone(helm: Path) -> None:
    before = ("app.module=shop:app", "app.files.shop\\.py=one")
    changed = _kinds(_changed(helm, "app.files.shop\\.py=two", before=before))
    assert {"Deployment/coordinator"} <= changed
    assert not changed & {"StatefulSet/worker", "Deployment/gateway"}


def test_more_workers_than_slots_are_refused_with_what_to_do(helm: Path) -> None:
    with pytest.raises(RenderFailed, match="slots"):
        rendered(helm, "styx", "--set", "coordinator.slots=2,worker.replicas=3")


def test_ends_have_time_to_drain(helm: Path) -> None:
    for setting, kind in (("worker.drainSeconds=200", "worker"), ("gateway.drainSeconds=200", "gateway")):
        pods = [each for each in workloads(rendered(helm, "styx", "--set", setting)) if each.where.endswith(kind)]
        assert [each.pod["terminationGracePeriodSeconds"] > 200 for each in pods] == [True]


@pytest.mark.parametrize(("seconds", "grace", "failures"), [("10", 100, 9), ("0.05", 91, 7), ("600", 690, 186)])
def test_a_worker_that_a_function_holds_up_has_time(helm: Path, seconds: str, grace: int, failures: int) -> None:
    """To end, and until its probe takes it for dead; the coordinator says what the limit is."""
    objects = rendered(helm, "styx", "--set-json", f"coordinator.functionSeconds={seconds}")
    pods = {each.where.rpartition("-")[2]: each.pod for each in workloads(objects)}
    assert pods["worker"]["terminationGracePeriodSeconds"] == grace
    (container,) = pods["worker"]["containers"]
    assert container["livenessProbe"]["failureThreshold"] == failures
    (container,) = pods["coordinator"]["containers"]
    assert {"name": "STYX_FUNCTION_SECONDS_MAX", "value": seconds} in container["env"]


def test_workers_drain_before_they_are_told_to_stop(helm: Path) -> None:
    (worker,) = [each for each in workloads(rendered(helm, "styx")) if each.where.endswith("worker")]
    assert worker.pod["containers"][0]["lifecycle"]["preStop"]["exec"]["command"][:2] == ["styx", "drain"]


@pytest.mark.parametrize("chart", ["kafka", "minio", "styx"])
def test_what_was_generated_once_stays_when_the_release_goes(helm: Path, chart: str) -> None:
    """Volumes stay as well, and cannot be read without."""
    secrets = [each for each in rendered(helm, chart) if each["kind"] == "Secret"]
    assert secrets
    for secret in secrets:
        assert secret["metadata"]["annotations"]["helm.sh/resource-policy"] == "keep"
