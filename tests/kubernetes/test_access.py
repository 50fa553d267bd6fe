"""Who may do what in a release: keys that fit each other, and told to whoever needs them."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pytest

from styx.gateway.auth import api_keys, policy
from tests.kubernetes.charts import CHARTS, Manifest, RenderFailed, rendered
from tests.kubernetes.workloads import workloads


def release(helm: Path, values: str) -> tuple[Manifest, ...]:
    return rendered(helm, "styx", "--values", str(CHARTS / "styx" / "ci" / f"{values}.yaml"))


def found(objects: tuple[Manifest, ...], kind: str, name: str) -> Any:
    return next(each for each in objects if (each["kind"], each["metadata"]["name"]) == (kind, name))


def container(objects: tuple[Manifest, ...], where: str) -> Any:
    return next(each for each in workloads(objects) if each.where == where).pod["containers"][0]


def environment(objects: tuple[Manifest, ...], where: str) -> dict[str, Any]:
    return {each["name"]: each.get("value", each.get("valueFrom")) for each in container(objects, where).get("env", [])}


def test_the_key_that_is_made_is_one_that_gateways_take(helm: Path) -> None:
    data = found(release(helm, "default"), "Secret", "r1-styx-access")["data"]
    key = base64.b64decode(data["api-key"]).decode()
    ring = api_keys.parse(base64.b64decode(data["keys.json"]))
    assert ring.identify(key, 0.0).name == "admin"
    assert len(base64.b64decode(data["facts-token"])) == 40


def test_who_is_told_of_it(helm: Path) -> None:
    objects = release(helm, "default")
    key = {"secretKeyRef": {"name": "r1-styx-access", "key": "api-key"}}
    token = {"secretKeyRef": {"name": "r1-styx-access", "key": "facts-token"}}
    gateway = environment(objects, "Deployment/r1-styx-gateway")
    assert gateway["STYX_API_KEYS"] == "/etc/styx/access/keys.json"
    assert "STYX_ANONYMOUS" not in gateway
    for where in ("Deployment/r1-styx-coordinator", "StatefulSet/r1-styx-worker", "Pod/r1-styx-test-smoke"):
        assert environment(objects, where)["STYX_FACTS_TOKEN"] == token
    for where in ("Pod/r1-styx-test-smoke", "Pod/r1-styx-test-bank"):
        assert environment(objects, where)["STYX_API_KEY"] == key
    assert "STYX_API_KEY" not in environment(objects, "StatefulSet/r1-styx-worker"), "functions would see it"


def test_anonymous_gateways(helm: Path) -> None:
    objects = release(helm, "anonymous")
    gateway = environment(objects, "Deployment/r1-styx-gateway")
    assert gateway["STYX_ANONYMOUS"] == "true"
    assert "STYX_API_KEYS" not in gateway
    assert "STYX_API_KEY" not in environment(objects, "Pod/r1-styx-test-bank")
    assert "authorization" not in found(objects, "ServiceMonitor", "r1-styx-gateway")["spec"]["endpoints"][0]
    monitor = found(objects, "ServiceMonitor", "r1-styx-coordinator")["spec"]["endpoints"][0]
    assert monitor["authorization"]["credentials"]["key"] == "facts-token"


def test_rules_tokens_and_https(helm: Path) -> None:
    objects = release(helm, "guarded")
    policy.parse(found(objects, "ConfigMap", "r1-styx-policy")["data"]["policy.toml"].encode())
    gateway = container(objects, "Deployment/r1-styx-gateway")
    mounts = {each["name"]: each["mountPath"] for each in gateway["volumeMounts"]}
    assert mounts.items() >= {"access": "/etc/styx/access", "policy": "/etc/styx/policy"}.items()
    assert mounts["gateway-tls"] == "/etc/styx/gateway-tls"
    for probe in ("startupProbe", "readinessProbe", "livenessProbe"):
        assert gateway[probe]["httpGet"]["scheme"] == "HTTPS"
        assert "scheme" not in container(objects, "StatefulSet/r1-styx-worker")[probe]["httpGet"]
    monitor = found(objects, "ServiceMonitor", "r1-styx-gateway")["spec"]["endpoints"][0]
    assert (monitor["scheme"], monitor["tlsConfig"]["serverName"]) == ("https", "r1-styx-gateway")
    assert monitor["authorization"]["credentials"] == {"name": "r1-styx-access", "key": "api-key"}
    assert environment(objects, "Pod/r1-styx-test-smoke")["GATEWAY_URL"] == "https://r1-styx-gateway:8080"
    assert environment(objects, "Pod/r1-styx-test-bank")["STYX_CA"] == "/etc/styx/gateway-tls/ca.crt"


@pytest.mark.parametrize(
    ("setting", "words"),
    [
        ("access.jwt.keys=https://a", "access.jwt.issuer and access.jwt.audiences"),
        ("access.anonymous=true,access.rateLimit=1", "leave one out"),
        ("access.jwt.keys=http://a", "does not match pattern"),
        ("access.jwt.algorithms[0]=HS256", "access.jwt.algorithms"),
    ],
)
def test_what_does_not_go_together(helm: Path, setting: str, words: str) -> None:
    with pytest.raises(RenderFailed, match=words.replace(".", "[./]")):
        rendered(helm, "styx", "--set", setting)


def test_gateways_may_fetch_signing_keys(helm: Path) -> None:
    """If what pods connect to is limited."""
    options = ("--set", "networkPolicy.egress.enabled=true", "--set", "networkPolicy.egress.signingKeys.ports={8443}")
    for values, open_ports in (("guarded", [8443]), ("default", [])):
        objects = rendered(helm, "styx", "--values", str(CHARTS / "styx" / "ci" / f"{values}.yaml"), *options)
        rules = found(objects, "NetworkPolicy", "r1-styx-gateway")["spec"]["egress"]
        assert [each["port"] for rule in rules for each in rule["ports"] if each["port"] == 8443] == open_ports


def test_secrets_made_elsewhere(helm: Path) -> None:
    objects = release(helm, "existing-secret")
    assert not [each for each in objects if each["kind"] == "Secret" and "access" in each["metadata"]["name"]]
    assert environment(objects, "StatefulSet/r1-styx-worker")["STYX_FACTS_TOKEN"] == {
        "secretKeyRef": {"name": "users-access", "key": "token"}
    }
    assert "users-access" in json.dumps(next(e.pod for e in workloads(objects) if "gateway" in e.where))
