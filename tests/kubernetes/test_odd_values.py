"""Values that nobody thought of: names that read as numbers, labels that come twice, pairs that do not fit. Each is
rendered as it was meant, or refused in words; none makes an object that the API server would refuse.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.kubernetes.charts import CHARTS, NAMESPACE, RELEASE, Manifest, RenderFailed, rendered, run_helm
from tests.kubernetes.object_schemas import VERSIONS, violations
from tests.kubernetes.workloads import SERVERS, workloads

pytestmark = pytest.mark.slow


def _labels(manifests: tuple[Manifest, ...], kind: str, name: str) -> dict[str, Any]:
    (found,) = [each for each in manifests if each["kind"] == kind and each["metadata"]["name"] == name]
    labels: dict[str, Any] = found["spec"].get("template", found)["metadata"]["labels"]
    return labels


NUMBERS = {
    "styx": (
        "log.existingSecret=1,log.usernameKey=2,log.passwordKey=3",
        "store.existingSecret=1e3,store.accessKeyKey=2,store.secretKeyKey=null",
        "secret.existingSecret=true,secret.key=1,tls.existingSecret=2,serviceAccount.name=3,fullnameOverride=true",
        "worker.priorityClassName=1,nameOverride=on,app.module=a:b,app.existingConfigMap=1,tmpSize=1",
        "gateway.ingress.className=1,gateway.ingress.hosts[0].host=1",
        "gateway.ingress.hosts[0].paths[0]=/a: b #c",
        "backup.to=s3://backups/c,backup.existingSecret=1,backup.accessKeyKey=2,backup.timeZone=null",
        "restore.from=s3://backups/c,restore.secret.name=1,restore.secret.key=2,restore.existingSecret=3",
        "log.caSecret.name=1,log.caSecret.key=2,log.url=kafka://a:1?protocol=SASL_SSL",
    ),
    "kafka": (
        "nameOverride=on,serviceAccount.name=1,priorityClassName=2,auth.existingSecret=3,auth.usernameKey=4",
        "tls.existingSecret=1,fullnameOverride=true,persistence.storageClass=1",
    ),
    "minio": ("nameOverride=on,serviceAccount.name=1,priorityClassName=2,auth.existingSecret=3,fullnameOverride=no",),
}


@pytest.mark.parametrize("chart", NUMBERS)
def test_a_name_that_reads_as_a_number_is_a_name(helm: Path, chart: str) -> None:
    words = [word for setting in NUMBERS[chart] for word in ("--set-string", setting)]
    if chart == "styx":
        words += ["--set", "gateway.ingress.enabled=true,backup.enabled=true"]
    manifests = rendered(helm, chart, *words)
    assert [each for manifest in manifests for each in violations(manifest, VERSIONS[-1])] == []


def test_a_release_and_a_namespace_may_be_of_digits_but_for_a_name_of_services(helm: Path) -> None:
    arguments = ("--namespace", "123", "--set", "fullnameOverride=a")
    text = run_helm(helm, "template", "123", str(CHARTS / "minio"), *arguments)
    assert "namespace: 123\n" not in text
    assert "instance: 123\n" not in text
    for name in ("1st", "my.release"):
        for chart in ("styx", "kafka", "minio"):
            with pytest.raises(RenderFailed, match="cannot be the name of a Service"):
                run_helm(helm, "template", name, str(CHARTS / chart), "--namespace", NAMESPACE)


def test_the_more_exact_label_counts(helm: Path) -> None:
    settings = ("--set", "commonLabels.team=all,commonLabels.other=kept,worker.podLabels.team=one")
    monitors = ("--set", "serviceMonitor.enabled=true,serviceMonitor.labels.team=two,dashboards.enabled=true")
    dashboards = ("--set", "dashboards.labels.team=three,tests.podLabels.team=four")
    operator = ("--api-versions", "monitoring.coreos.com/v1")
    manifests = rendered(helm, "styx", *settings, *monitors, *dashboards, *operator)
    name = f"{RELEASE}-styx"
    worker = _labels(manifests, "StatefulSet", f"{name}-worker")
    assert (worker["team"], worker["other"]) == ("one", "kept")
    assert _labels(manifests, "Deployment", f"{name}-gateway")["team"] == "all"
    assert _labels(manifests, "ServiceMonitor", f"{name}-gateway")["team"] == "two"
    found = {(each["kind"], each["metadata"]["labels"]["team"]) for each in manifests}
    assert {("ConfigMap", "three"), ("Pod", "four"), ("Service", "all")} <= found
    settings = ("--set", "commonLabels.team=all,podLabels.team=one")
    assert _labels(rendered(helm, "kafka", *settings), "StatefulSet", f"{RELEASE}-kafka")["team"] == "one"


@pytest.mark.parametrize(
    ("chart", "setting", "words"),
    [
        ("styx", "worker.podLabels.app\\.kubernetes\\.io/name=mine", "invalid propertyName"),
        ("styx", "commonLabels.styx/kafka-client=no", "invalid propertyName"),
        ("styx", "coordinator.annotations.styx/slots=4", "invalid propertyName"),
        ("styx", "image.repository=registry.example.com/styx:1", "does not match pattern"),
        (
            "styx",
            "gateway.ingress.hosts[0].host=No Host,gateway.ingress.hosts[0].paths={/}",
            "does not match pattern",
        ),
        ("styx", "gateway.service.nodePort=30000", "type is ClusterIP"),
        ("styx", "gateway.service.externalTrafficPolicy=Local", "type is ClusterIP"),
        ("styx", "gateway.service.loadBalancerClass=a", "set the type to LoadBalancer"),
        ("styx", "serviceMonitor.interval=5s", "would leave the monitors out"),
        ("styx", "log.url=kafka://a:1", "does not ask for a login"),
        ("styx", f"backup.enabled=true,backup.to=s3://styx/{RELEASE}/", "backup.to is store.url"),
        (
            "styx",
            "networkPolicy.egress.enabled=true,log.url=kafka://a:1?protocol=SASL_SSL",
            "does not let pods to port 1 of",
        ),
        ("styx", "networkPolicy.egress.enabled=true,store.endpoint=http://a", "does not let pods to port 80 of"),
        ("styx", "log.url=kafka://me:secret@a?protocol=SASL_SSL", "no user name or password"),
        ("styx", "log.url=kafka://a?protcol=SASL_SSL", "log.url is"),
        ("styx", "log.url=kafka://a?protocol=SASL_SSL&mechanism=FOO", "log.url is"),
        ("styx", "store.url=s3:///prefix", "store.url is"),
        ("styx", "store.url=ftp://bucket/prefix", "does not match pattern"),
        ("styx", "backup.to=gs://bucket/x,backup.secretOptions.account_key=key", "does not name the Secret"),
        ("styx", "store.options.account-key=x", "does not match pattern"),
        ("stack", "styx.store.url=gs://bucket/prefix", "Set minio.enabled=false"),
        ("styx", "store.endpoint=https://key:secret@a", "put no keys into values"),
        ("styx", "backup.endpoint=https://key:secret@a", "put no keys into values"),
        ("styx", "app.name=a/b", "does not match pattern"),
        ("stack", "styx.log.url=kafka://r1-kafka:9093?protocol=SASL_PLAINTEXT", "a Kafka of its own"),
        ("stack", "styx.log.url=kafka://r1-kafka?protocol=SASL_PLAINTEXT&mechanism=SCRAM-SHA-256", "PLAIN only"),
        ("stack", "styx.log.existingSecret=mine", "Set styx.log.existingSecret to that"),
        ("stack", "styx.log.passwordKey=mine", "Set them alike"),
        ("stack", "styx.store.accessKeyKey=mine", "Set them alike"),
        ("stack", "styx.store.endpoint=http://r1-minio:9001", "a MinIO of its own"),
        ("kafka", "podLabels.app\\.kubernetes\\.io/component=mine", "invalid propertyName"),
        ("kafka", "commonLabels.team=a b", "does not match pattern"),
        ("kafka", "podAnnotations.checksum/config=mine", "invalid propertyName"),
        ("kafka", "config.num\\.network\\.threads=3\nlisteners=CLIENT://:1", "does not match pattern"),
        ("kafka", "heap=2g", "beside its heap"),
        ("kafka", "resources.limits.memory=1536m", "is not understood"),
        ("kafka", "replicas=3,shutdown.waitSeconds=140", "gracePeriodSeconds"),
        ("minio", "podLabels.a=b c", "does not match pattern"),
    ],
)
def test_what_does_not_fit_is_refused(helm: Path, chart: str, setting: str, words: str) -> None:
    with pytest.raises(RenderFailed, match=words):
        rendered(helm, chart, "--set", setting)


def test_a_limit_of_memory_is_understood_in_each_way_of_writing_it(helm: Path) -> None:
    for limit in ("1.5Gi", "1600M", "1610612736"):
        assert rendered(helm, "kafka", "--set", f"resources.limits.memory={limit},heap=1g")


def test_a_variable_that_the_chart_sets_is_not_set_again(helm: Path) -> None:
    """Of two of one name, one counts, and `kubectl apply` may drop either."""
    files = ("external", "tls", "deployed-app", "ingress", "guarded", "anonymous", "default")
    value_sets = [("--values", str(CHARTS / "styx" / "ci" / f"{each}.yaml")) for each in files]
    servers = [each for values in value_sets for each in workloads(rendered(helm, "styx", *values))]
    containers = [server.pod["containers"][0] for server in servers if server.kind in SERVERS]
    set_ones = {variable["name"] for container in containers for variable in container["env"]}
    schema = json.loads((CHARTS / "styx" / "values.schema.json").read_text())
    refused = set(schema["definitions"]["env"]["items"]["properties"]["name"]["not"]["anyOf"][0]["enum"])
    assert {each for each in set_ones if each.startswith("STYX_")} == refused - {"STYX_KEEP_LOG"}
    with pytest.raises(RenderFailed, match="extraEnv/0/name"):
        rendered(helm, "styx", "--set", "worker.extraEnv[0].name=STYX_NAME,worker.extraEnv[0].value=a")
    with pytest.raises(RenderFailed, match="extraEnv/0/name"):
        rendered(helm, "styx", "--set", "worker.extraEnv[0].name=STYX_AZ_ACCOUNT,worker.extraEnv[0].value=a")


def test_options_of_a_store_become_variables(helm: Path) -> None:
    chosen = "store.url=az://orders/styx,store.options.account=a,store.existingSecret=s,store.secretOptions.sas_token=k"
    for role in workloads(rendered(helm, "styx", "--set", chosen)):
        variables = {each["name"]: each for each in role.pod["containers"][0]["env"]}
        if "STYX_STORE" not in variables:
            continue
        assert variables["STYX_STORE"]["value"] == "az://orders/styx"
        assert variables["STYX_AZ_ACCOUNT"]["value"] == "a"
        assert variables["STYX_AZ_SAS_TOKEN"]["valueFrom"] == {"secretKeyRef": {"name": "s", "key": "k"}}
        assert not [name for name in variables if name.startswith("STYX_S3_")]


def test_a_release_is_missed_beside_another_one(helm: Path) -> None:
    arguments = ("--api-versions", "monitoring.coreos.com/v1", "--set", "prometheusRule.enabled=true")
    for monitors, expected in (
        ("serviceMonitor.enabled=true", f'{{namespace="{NAMESPACE}",app_kubernetes_io_instance="{RELEASE}"}}'),
        ("serviceMonitor.enabled=false", ""),
    ):
        (rules,) = [
            each for each in rendered(helm, "styx", *arguments, "--set", monitors) if each["kind"] == "PrometheusRule"
        ]
        alerts = [rule for group in rules["spec"]["groups"] for rule in group["rules"]]
        (expression,) = [each["expr"] for each in alerts if each["alert"] == "StyxNotScraped"]
        assert expression == f"absent(styx_phase{expected})"


def test_pods_say_which_version_they_are_of(helm: Path) -> None:
    """In a rolling upgrade, `kubectl get pods -L app.kubernetes.io/version` shows how far it is."""
    manifests = rendered(helm, "styx", "--set", f"image.tag=9.9-{'a' * 60}")
    for kind, name in (("Deployment", "gateway"), ("Deployment", "coordinator"), ("StatefulSet", "worker")):
        version = _labels(manifests, kind, f"{RELEASE}-styx-{name}")["app.kubernetes.io/version"]
        assert version == f"9.9-{'a' * 59}"
