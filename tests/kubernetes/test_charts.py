"""Every chart with every documented combination of values: what helm makes of it fits Kubernetes and the policies."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest
import yaml

from tests.kubernetes.charts import CHARTS, NAMES, RELEASE, Manifest, RenderFailed, rendered, run_helm, values_files
from tests.kubernetes.object_schemas import VERSIONS, violations
from tests.kubernetes.policies import POLICIES, Policy, the_network_is_closed
from tests.kubernetes.workloads import strings, workloads

pytestmark = pytest.mark.slow

COMBINATIONS: Final = [(chart, file) for chart in NAMES for file in [None, *values_files(chart)]]
WAIVED: Final[dict[tuple[str, str], Policy]] = {("styx", "no-network-policy"): the_network_is_closed}
"""What a combination of values is there to switch off."""
MONITORING: Final = ("--api-versions", "monitoring.coreos.com/v1")


def _name(value: object) -> str:
    return value.stem if isinstance(value, Path) else "defaults" if value is None else str(value)


combinations = pytest.mark.parametrize(("chart", "file"), COMBINATIONS, ids=_name)


def _manifests(helm: Path, chart: str, file: Path | None) -> tuple[Manifest, ...]:
    return rendered(helm, chart, *MONITORING, *([] if file is None else ["--values", str(file)]))


def test_there_are_combinations() -> None:
    assert {chart for chart, file in COMBINATIONS if file is not None} == set(NAMES)


@pytest.mark.parametrize("chart", NAMES)
def test_lint_finds_nothing(helm: Path, chart: str) -> None:
    files = [word for file in values_files(chart) for word in ("--values", str(file))]
    run_helm(helm, "lint", "--strict", str(CHARTS / chart))
    for number in range(0, len(files), 2):
        run_helm(helm, "lint", "--strict", str(CHARTS / chart), *files[number : number + 2])


@combinations
def test_it_fits_each_version_of_kubernetes(helm: Path, chart: str, file: Path | None) -> None:
    manifests = _manifests(helm, chart, file)
    assert manifests
    assert [each for version in VERSIONS for manifest in manifests for each in violations(manifest, version)] == []


@combinations
def test_it_keeps_the_policies(helm: Path, chart: str, file: Path | None) -> None:
    manifests = _manifests(helm, chart, file)
    waived = WAIVED.get((chart, "" if file is None else file.stem))
    assert waived is None or list(waived(manifests)), "nothing to waive"
    found = [each for policy in POLICIES if policy is not waived for each in policy(manifests)]
    # What the values name, the user makes, or another chart.
    texts = [path.read_text() for path in (CHARTS / chart / "values.yaml", file) if path is not None]
    users = {each for text in texts for each in strings(yaml.safe_load(text.replace("{{ .Release.Name }}", RELEASE)))}
    assert [each for each in found if "there is no" not in each or each.rpartition(" ")[2] not in users] == []


@pytest.mark.parametrize("chart", NAMES)
def test_rendering_again_changes_nothing_but_secrets(helm: Path, chart: str) -> None:
    """Otherwise each upgrade would restart pods."""
    twice = (_manifests(helm, chart, None), rendered.__wrapped__(helm, chart, *MONITORING))
    plain = [[each for each in manifests if each["kind"] != "Secret"] for manifests in twice]
    assert plain[0] == plain[1]


def test_gateways_answer_under_the_names_by_which_they_are_reached(helm: Path) -> None:
    objects = rendered(helm, "styx", "--values", str(CHARTS / "styx" / "ci" / "ingress.yaml"))
    gateway = next(each for each in workloads(objects) if each.where == "Deployment/r1-styx-gateway")
    environment = {each["name"]: each.get("value") for each in gateway.pod["containers"][0]["env"]}
    service = "r1-styx-gateway"
    own = [service + end for end in ("", ".somewhere", ".somewhere.svc", ".somewhere.svc.cluster.local")]
    assert environment["STYX_ALLOW_HOST"].split() == [*own, "bank.example.com", "*.bank.example.com"]
    assert environment["STYX_ALLOW_ORIGIN"].split() == ["https://shop.example.com", "http://localhost:3000"]


def test_a_replica_is_asked_by_few_and_reaches_who_gives_epochs(helm: Path) -> None:
    objects = rendered(helm, "styx", "--values", str(CHARTS / "styx" / "ci" / "replica.yaml"))
    [replica] = [each for each in workloads(objects) if each.where == "Deployment/r1-styx-replica"]
    [container] = replica.pod["containers"]
    environment = {each["name"]: each.get("value") for each in container["env"]}
    assert container["image"] == "registry.example.com/styx-sql:1"
    assert environment["STYX_ALLOW_HOST"].split()[::4] == ["r1-styx-replica", "sql.example.com"]
    assert environment["STYX_STORE"]
    assert environment["STYX_COORDINATOR"] == "r1-styx-coordinator:7070"
    names = [each["name"] for each in container["env"]]
    assert len(names) == len(set(names))
    assert "STYX_LOG" not in environment
    assert (environment["STYX_API_KEYS"], environment["STYX_QUERY_ROWS"]) == ("/etc/styx/access/keys.json", "100000")
    [policy] = [
        each for each in objects if each["kind"] == "NetworkPolicy" and each["metadata"]["name"] == "r1-styx-replica"
    ]
    asking, watching = policy["spec"]["ingress"]
    assert asking == {
        "from": [{"podSelector": {"matchLabels": {"app": "dashboard"}}}],
        "ports": [{"port": "sql", "protocol": "TCP"}],
    }
    assert watching["ports"] == [{"port": "http", "protocol": "TCP"}]
    ports = {port["port"] for rule in policy["spec"]["egress"] for port in rule["ports"]}
    assert ports == {53, 443, 9000, 7070, 7071}
    for component in ("worker", "coordinator"):
        [policy] = [
            each
            for each in objects
            if each["kind"] == "NetworkPolicy" and each["metadata"]["name"] == f"r1-styx-{component}"
        ]
        assert "replica" in str(policy["spec"]["ingress"][0]["from"])


def test_a_replica_of_snapshots_reaches_the_store_alone(helm: Path) -> None:
    own = ("--values", str(CHARTS / "styx" / "ci" / "replica.yaml"), "--set", "replica.epochs=false")
    objects = rendered(helm, "styx", *own)
    [replica] = [each for each in workloads(objects) if each.where == "Deployment/r1-styx-replica"]
    [container] = replica.pod["containers"]
    names = [each["name"] for each in container["env"]]
    assert "STYX_COORDINATOR" not in names
    assert names.count("STYX_NAME") == names.count("STYX_HOST") == 1
    policies = {each["metadata"]["name"]: each["spec"] for each in objects if each["kind"] == "NetworkPolicy"}
    ports = {port["port"] for rule in policies["r1-styx-replica"]["egress"] for port in rule["ports"]}
    assert ports == {53, 443, 9000}
    assert "replica" not in str(policies["r1-styx-worker"]["ingress"] + policies["r1-styx-coordinator"]["ingress"])


def test_a_replica_without_an_image_that_has_sql_is_refused(helm: Path) -> None:
    with pytest.raises(RenderFailed, match="name an image that has the extra sql"):
        rendered(helm, "styx", "--set", "replica.enabled=true")
