"""Each policy notices what it is there for, on manifests that otherwise keep all of them."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from tests.kubernetes import object_schemas, policies
from tests.kubernetes.charts import Manifest
from tests.kubernetes.policies import POLICIES, Policy
from tests.kubernetes.workloads import selects

Break = Callable[[dict[str, Any]], None]
GOOD: Final[list[Manifest]] = yaml.safe_load(Path(__file__).with_name("good.yaml").read_text())


def _good() -> list[Manifest]:
    return [deepcopy(each) for each in GOOD]  # labels are shared in the file


def _pod(manifests: list[Manifest]) -> dict[str, Any]:
    pod: dict[str, Any] = manifests[-1]["spec"]["template"]["spec"]
    return pod


def test_good_manifests_keep_all_policies() -> None:
    for policy in POLICIES:
        assert list(policy(_good())) == []


@pytest.mark.parametrize("version", object_schemas.VERSIONS)
def test_good_manifests_fit_the_schemas(version: str) -> None:
    assert [each for manifest in _good() for each in object_schemas.violations(manifest, version)] == []


@pytest.mark.parametrize("version", object_schemas.VERSIONS)
def test_an_unknown_field_a_wrong_type_and_an_unknown_kind_do_not(version: str) -> None:
    manifest = _good()[-1]
    manifest["spec"]["replica"] = 2
    assert "'replica' was unexpected" in object_schemas.violations(manifest, version)[0]
    del manifest["spec"]["replica"]
    manifest["spec"]["replicas"] = "two"
    assert "spec.replicas" in object_schemas.violations(manifest, version)[0]
    manifest["apiVersion"] = "apps/v1beta1"
    assert "has no apps/v1beta1 StatefulSet" in object_schemas.violations(manifest, version)[0]


POD_CASES: Final[list[tuple[Policy, str, Break]]] = [
    (policies.pods_have_no_rights, "may run as root", lambda pod: pod["securityContext"].pop("runAsNonRoot")),
    (policies.pods_have_no_rights, "may run as root", lambda pod: pod["securityContext"].update(runAsUser=0)),
    (policies.pods_have_no_rights, "no seccomp profile", lambda pod: pod["securityContext"].pop("seccompProfile")),
    (policies.pods_have_no_rights, "a token", lambda pod: pod.pop("automountServiceAccountToken")),
    (policies.pods_have_no_rights, "default account", lambda pod: pod.pop("serviceAccountName")),
    (policies.pods_have_no_rights, "hostNetwork is set", lambda pod: pod.update(hostNetwork=True)),
    (
        policies.pods_have_no_rights,
        "is the node's",
        lambda pod: pod["volumes"].append({"name": "node", "hostPath": {"path": "/"}}),
    ),
    (policies.pods_have_no_rights, "fill the node's disk", lambda pod: pod["volumes"][1]["emptyDir"].clear()),
    (policies.what_is_named_is_there, "no account", lambda pod: pod.update(serviceAccountName="nobody")),
    (
        policies.what_is_named_is_there,
        "no ConfigMap other",
        lambda pod: pod["volumes"][0]["configMap"].update(name="other"),
    ),
    (
        policies.what_is_named_is_there,
        "has no other.conf",
        lambda pod: pod["volumes"][0]["configMap"]["items"][0].update(key="other.conf"),
    ),
    (policies.what_is_named_is_there, "no volume tmp", lambda pod: pod["volumes"].pop()),
    (
        policies.what_is_named_is_there,
        "nobody mounts more",
        lambda pod: pod["volumes"].append({"name": "more", "emptyDir": {}}),
    ),
    (policies.servers_are_probed, "how long its end", lambda pod: pod.pop("terminationGracePeriodSeconds")),
    (policies.disruptions_are_bounded, "come to one node", lambda pod: pod.pop("topologySpreadConstraints")),
]

CONTAINER_CASES: Final[list[tuple[Policy, str, Break]]] = [
    (
        policies.containers_are_confined,
        "write to its root",
        lambda c: c["securityContext"].update(readOnlyRootFilesystem=False),
    ),
    (
        policies.containers_are_confined,
        "gain rights",
        lambda c: c["securityContext"].pop("allowPrivilegeEscalation"),
    ),
    (policies.containers_are_confined, "gain rights", lambda c: c["securityContext"].update(privileged=True)),
    (policies.containers_are_confined, "capabilities", lambda c: c["securityContext"].pop("capabilities")),
    (
        policies.containers_are_confined,
        "capabilities",
        lambda c: c["securityContext"]["capabilities"].update(add=["NET_ADMIN"]),
    ),
    (policies.containers_are_confined, "runs as root", lambda c: c["securityContext"].update(runAsUser=0)),
    (policies.containers_are_confined, "no cpu in its requests", lambda c: c["resources"]["requests"].pop("cpu")),
    (policies.containers_are_confined, "no memory in its limits", lambda c: c["resources"].pop("limits")),
    (policies.containers_are_confined, "has no version", lambda c: c.update(image="registry:5000/shop")),
    (policies.containers_are_confined, "has no version", lambda c: c.update(image="shop:latest")),
    (policies.servers_are_probed, "no startupProbe", lambda c: c.pop("startupProbe")),
    (policies.servers_are_probed, "no livenessProbe", lambda c: c.pop("livenessProbe")),
    (
        policies.servers_are_probed,
        "at port 'metrics'",
        lambda c: c["readinessProbe"]["httpGet"].update(port="metrics"),
    ),
    (policies.servers_are_probed, "not ready is killed", lambda c: c.update(livenessProbe=c["readinessProbe"])),
    (
        policies.no_secret_is_plain,
        "SHOP_SECRET is not taken",
        lambda c: c.update(env=[{"name": "SHOP_SECRET", "value": "x"}]),
    ),
    (
        policies.no_secret_is_plain,
        "shows what a Secret holds",
        lambda c: c.update(args=["--secret=a secret that nobody knows"]),
    ),
    (
        policies.what_is_named_is_there,
        "Secret shop has no token",
        lambda c: c["env"][0]["valueFrom"]["secretKeyRef"].update(key="token"),
    ),
    (
        policies.what_is_named_is_there,
        "no Secret other",
        lambda c: c.update(envFrom=[{"secretRef": {"name": "other"}}]),
    ),
    (policies.what_is_named_is_there, "'http' is none of", lambda c: c["ports"][0].update(name="web")),
    (policies.the_network_is_closed, "opens port 'http'", lambda c: c["ports"][0].update(name="web")),
]

OBJECT_CASES: Final[list[tuple[Policy, str, str, Break]]] = [
    (policies.no_secret_is_plain, "everybody knows", "Secret", lambda m: m.update(stringData={"x": "minioadmin"})),
    (
        policies.no_secret_is_plain,
        "shows what a Secret holds",
        "ConfigMap",
        lambda m: m["data"].update(x="a secret that nobody knows"),
    ),
    (
        policies.what_is_named_is_there,
        "pods of 0 workloads",
        "Service",
        lambda m: m["spec"]["selector"].update(app="x"),
    ),
    (
        policies.workloads_belong_together,
        "no headless Service",
        "Service",
        lambda m: m["spec"].pop("clusterIP"),
    ),
    (
        policies.workloads_belong_together,
        "not take its own pods",
        "StatefulSet",
        lambda m: m["spec"]["selector"]["matchLabels"].update(app="x"),
    ),
    (
        policies.disruptions_are_bounded,
        "0 disruption budgets",
        "PodDisruptionBudget",
        lambda m: m["spec"]["selector"]["matchLabels"].update(app="x"),
    ),
    (
        policies.disruptions_are_bounded,
        "never be drained",
        "PodDisruptionBudget",
        lambda m: m["spec"].update(maxUnavailable=0),
    ),
    (
        policies.the_network_is_closed,
        "everybody may connect",
        "NetworkPolicy",
        lambda m: m["spec"]["podSelector"]["matchLabels"].update(app="x"),
    ),
    (policies.nobody_gets_rights, "needs the API server", "ConfigMap", lambda m: m.update(kind="Role")),
    (
        policies.objects_are_well_named,
        "lacks the labels app.kubernetes.io/instance",
        "ConfigMap",
        lambda m: m["metadata"]["labels"].pop("app.kubernetes.io/instance"),
    ),
    (policies.objects_are_well_named, "64 characters", "ConfigMap", lambda m: m["metadata"].update(name="x" * 64)),
    (
        policies.objects_are_well_named,
        "53 characters",
        "StatefulSet",
        lambda m: m["metadata"].update(name="x" * 53),
    ),
]


def _noticed(policy: Policy, manifests: list[Manifest], words: str) -> None:
    found = list(policy(manifests))
    assert any(words in each for each in found), (words, found)


def test_pods() -> None:
    for policy, words, spoil in POD_CASES:
        manifests = _good()
        spoil(_pod(manifests))
        _noticed(policy, manifests, words)


@pytest.mark.parametrize("kind", ["containers", "initContainers"])
def test_containers(kind: str) -> None:
    for policy, words, spoil in CONTAINER_CASES:
        manifests = _good()
        pod = _pod(manifests)
        if kind == "initContainers":
            if policy in (policies.servers_are_probed, policies.the_network_is_closed) or "is none of" in words:
                continue  # what prepares has neither probes nor ports
            pod["initContainers"] = deepcopy(pod["containers"])
        spoil(pod[kind][0])
        _noticed(policy, manifests, words)


def test_objects() -> None:
    for policy, words, kind, spoil in OBJECT_CASES:
        manifests = _good()
        spoil(next(each for each in manifests if each["kind"] == kind))
        _noticed(policy, manifests, words)


def test_selectors() -> None:
    labels = {"app": "shop", "part": "db"}
    assert selects({}, labels)
    assert selects({"app": "shop"}, labels)
    assert not selects({"matchLabels": {"app": "shop", "part": "web"}}, labels)
    for operator, values, holds in (
        ("In", ["db", "web"], True),
        ("In", ["web"], False),
        ("NotIn", ["db"], False),
        ("Exists", [], True),
        ("DoesNotExist", [], False),
    ):
        term = {"key": "part", "operator": operator, "values": values}
        assert selects({"matchLabels": {"app": "shop"}, "matchExpressions": [term]}, labels) is holds


def test_two_of_a_name_and_a_selector_that_takes_others_pods() -> None:
    manifests = [*_good(), deepcopy(GOOD[-1])]
    assert "it is there 2 times" in next(policies.objects_are_well_named(manifests))
    manifests[-1]["metadata"]["name"] = "other"
    assert any("takes pods of" in each for each in policies.workloads_belong_together(manifests))


def test_every_policy_is_broken_here_once() -> None:
    broken = {case[0] for case in [*POD_CASES, *CONTAINER_CASES]} | {case[0] for case in OBJECT_CASES}
    assert broken == set(POLICIES)
