"""Releases with keys, tokens, rules and TLS, run: the manifests' own processes on real Kafka and a real S3 server, with
their Secrets mounted and changed as Kubernetes does it (`node.py`).
"""

from __future__ import annotations

import asyncio
import json
import re
import ssl
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from aiokafka.admin import AIOKafkaAdminClient

from styx.gateway.auth import api_keys
from styx.kafka.topics import topics_of
from tests.gateway.auth.signers import Signer
from tests.kubernetes.charts import rendered
from tests.kubernetes.guarded_shop import BACKUPS, FACTS, SECRET, SIGNER, Shop, bearer, external, made, s3_keys
from tests.kubernetes.node import Answer, Node, ask, until
from tests.kubernetes.workloads import of_kind, selects
from tests.real_services import RealKafka, RealMinio

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform != "linux", reason="pods' addresses are below 127.0.0.0/8, which only Linux has"),
]


@pytest.fixture(scope="module")
def shop(kafka: RealKafka, minio: RealMinio, helm: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shop]:
    shop = Shop(tmp_path_factory.mktemp("shop"), kafka, minio, helm)
    try:
        with shop.node.running():
            yield shop
    finally:
        shop.login.close()
        asyncio.run(_forgotten(kafka.bootstrap))


async def _forgotten(bootstrap: str) -> None:
    """A process of a run may set this module up twice, and its second release finds no topics of the first."""
    admin = AIOKafkaAdminClient(bootstrap_servers=bootstrap)
    await admin.start()
    try:
        await admin.delete_topics(list(topics_of("bank")))
    finally:
        await admin.close()


def code(answer: Answer) -> str:
    return str(json.loads(answer.body)["error"]["code"])


def test_who_is_let_in(shop: Shop) -> None:
    for path in ("/healthz", "/readyz"):
        assert shop.ask("GET", path).status == 200
    open_account = ("POST", "/v1/account/alice/open", "[100]")
    refused = shop.ask(*open_account)
    assert (refused.status, code(refused)) == (401, "unauthenticated")
    assert shop.ask(*open_account, **bearer(shop.key + "x")).status == 401
    assert shop.ask(*open_account, **bearer(shop.key)).status == 200
    assert shop.ask("GET", "/v1/account/alice", **bearer(shop.key)).status == 200
    wrong = shop.ask("GET", "/v1/account/alice", Host="shop.example.com", **bearer(shop.key))
    assert (wrong.status, code(wrong)) == (403, "forbidden_host")
    for host in ("r1-styx-gateway.somewhere.svc", "r1-styx-gateway.somewhere.svc.cluster.local:8080"):
        assert shop.ask("GET", "/v1/account/alice", Host=host, **bearer(shop.key)).status == 200


def test_tokens_by_the_rules(shop: Shop) -> None:
    def token(**claims: Any) -> dict[str, str]:
        return bearer(SIGNER.token(**claims))

    assert shop.ask("POST", "/v1/account/bob/open", "[1]", **token(role="teller")).status == 200
    assert shop.ask("POST", "/v1/account/bob/open", "[1]", **token(role="guest")).status == 403
    assert shop.ask("GET", "/v1/account/bob", **token(role="teller")).status == 403
    assert shop.ask("GET", "/metrics", **token(role="teller")).status == 403
    assert shop.ask("GET", "/v1/account/bob", **token(role="teller", aud="other")).status == 401
    other = Signer("k1-of-another", "ES256")
    other.id = "k1"
    assert shop.ask("GET", "/v1/account/bob", **bearer(other.token(role="teller"))).status == 401


def test_ports_are_those_of_manifest_services_and_policies(shop: Shop) -> None:
    policies = of_kind(shop.node.manifests, "NetworkPolicy")
    services = of_kind(shop.node.manifests, "Service")
    for name in ("styx-coordinator-0", "styx-worker-0", "styx-worker-1", "styx-gateway-0"):
        pod = shop.node.pod(name)
        assert pod.listening() == set(pod.ports.values()), name
        labels = pod.workload.labels
        chosen = [each["spec"] for each in policies if selects(each["spec"]["podSelector"], labels)]
        opened = {port["port"] for spec in chosen for rule in spec["ingress"] for port in rule["ports"]}
        assert opened == set(pod.ports), name
        for service in services:
            if selects(service["spec"]["selector"], labels):
                assert {each["targetPort"] for each in service["spec"]["ports"]} <= set(pod.ports)


def test_monitors_get_their_metrics(shop: Shop) -> None:
    for kind, name in (("ServiceMonitor", "coordinator"), ("ServiceMonitor", "gateway"), ("PodMonitor", "worker")):
        monitor = next(
            each for each in of_kind(shop.node.manifests, kind) if each["metadata"]["name"] == f"r1-styx-{name}"
        )
        pod = shop.node.pod(f"styx-{name}-0")
        for each in monitor["spec"].get("endpoints") or monitor["spec"]["podMetricsEndpoints"]:
            ref = each["authorization"]["credentials"]
            credential = shop.node.data("Secret", ref["name"])[ref["key"]].decode()
            address, tls = (pod.address, pod.ports[each["port"]]), None
            if each.get("scheme") == "https":
                ca = each["tlsConfig"]["ca"]["secret"]
                authority = shop.node.data("Secret", ca["name"])[ca["key"]].decode()
                tls = (ssl.create_default_context(cadata=authority), each["tlsConfig"]["serverName"])
            assert ask(address, "GET", each["path"], tls=tls).status == 401
            answer = ask(address, "GET", each["path"], bearer(credential), tls=tls)
            assert answer.status == 200, (name, answer)
            assert b"\nstyx_" in answer.body


def test_helm_test_passes(shop: Shop) -> None:
    for name in ("styx-test-smoke-0", "styx-test-bank-0"):
        pod = shop.node.pod(name)
        done = pod.run(pod.command(pod.container))
        assert done.returncode == 0, done.stdout


def test_commands_in_pods(shop: Shop) -> None:
    """As docs/operations.md has them run by `kubectl exec`."""
    coordinator, worker = shop.node.pod("styx-coordinator-0"), shop.node.pod("styx-worker-0")
    for pod, words in (
        (coordinator, ["styx", "status"]),
        (coordinator, ["styx", "status", "--json"]),
        (worker, ["styx", "status"]),
        (shop.gateway, ["styx", "status"]),
        (worker, ["styx", "errors"]),
    ):
        done = pod.run(words)
        assert done.returncode == 0, (pod.name, words, done.stdout)


def test_the_backup_is_made(shop: Shop) -> None:
    pod = shop.node.pod("styx-backup-0")
    until(lambda: pod.run(pod.command(pod.container)).returncode == 0, "no snapshot, so no backup")


def test_a_new_release_begins_with_the_backup(
    shop: Shop, other_kafka: RealKafka, minio: RealMinio, helm: Path, tmp_path: Path
) -> None:
    """Under another secret, without keys and TLS; ready as soon as the init container has restored it."""
    opened = shop.ask("POST", "/v1/account/before/open", "[77]", **bearer(shop.key))
    epoch = json.loads(opened.body)["transaction"]["epoch"]
    until(lambda: _snapshot_epoch(shop) >= epoch, "no snapshot")
    backup = shop.node.pod("styx-backup-0")
    until(lambda: backup.run(backup.command(backup.container)).returncode == 0, "no backup")
    values = external(other_kafka, minio) | {
        "restore": {
            "from": BACKUPS,
            "endpoint": f"http://{minio.endpoint}",
            "existingSecret": "users-s3",
            "secret": {"name": "users-old-secret", "key": "value"},
        },
        "access": {"anonymous": True},
        "gateway": {"replicas": 1},
        "worker": {"replicas": 1},
    }
    own = tmp_path / "values.json"
    own.write_text(json.dumps(values))
    more = {("Secret", "users-s3"): s3_keys(minio), ("Secret", "users-old-secret"): {"value": SECRET}}
    node = Node(tmp_path / "node", rendered(helm, "styx", "--values", str(own)), more)
    with node.running():
        answer = ask((node.pod("styx-gateway-0").address, 8080), "GET", "/v1/account/before")
    assert (answer.status, json.loads(answer.body)["result"]) == (200, {"balance": 77}), answer


def _snapshot_epoch(shop: Shop) -> int:
    status = ask((shop.node.pod("styx-coordinator-0").address, 8081), "GET", "/status", bearer(FACTS.decode()))
    found = (json.loads(status.body)["snapshot"] or {}).get("epoch")
    return -1 if found is None else int(found)


def test_certificates_are_read_again(shop: Shop) -> None:
    before = shop.certificate()
    fresh = shop.pair("gateway-2", "r1-styx-gateway")
    shop.node.replace("Secret", "users-gateway-certificate", fresh)
    expected = ssl.PEM_cert_to_DER_cert(fresh["tls.crt"].decode())
    assert expected != before
    until(lambda: shop.certificate() == expected, "the gateway still shows its first certificate")
    assert shop.ask("GET", "/readyz").status == 200


class Load(threading.Thread):
    """Sends one request after the other, with `key`, until it is told to end; `answers` by status."""

    def __init__(self, shop: Shop, number: int) -> None:
        super().__init__()
        self.key = shop.key
        self.ending = threading.Event()
        self.answers: dict[int, int] = {}
        self._shop = shop
        self._account = f"load-{number}"

    def run(self) -> None:
        while not self.ending.is_set():
            status = self._shop.ask("POST", f"/v1/account/{self._account}/open", "[1]", **bearer(self.key)).status
            self.answers[status] = self.answers.get(status, 0) + 1


def test_keys_are_exchanged_under_load(shop: Shop) -> None:
    first, (second, entry) = shop.key, made("admin")
    load = [Load(shop, number) for number in range(4)]
    for each in load:
        each.start()
    try:
        secret = ("Secret", "users-access")
        shop.node.replace(*secret, {"keys": api_keys.encode([shop.entry, entry])})
        until(lambda: shop.ask("GET", "/metrics", **bearer(second)).status == 200, "the second key is not taken")
        for each in load:
            each.key = second
        n_sent = [sum(each.answers.values()) for each in load]
        until(lambda: all(sum(e.answers.values()) > n + 2 for e, n in zip(load, n_sent, strict=True)), "no load")
        shop.node.replace(*secret, {"keys": api_keys.encode([entry]), "one-of-them": second.encode()})
        until(lambda: shop.ask("GET", "/metrics", **bearer(first)).status == 401, "the first key is still taken")
        shop.key, shop.entry = second, entry
    finally:
        for each in load:
            each.ending.set()
        for each in load:
            each.join()
    assert all(set(each.answers) == {200} for each in load), [each.answers for each in load]


def test_nothing_secret_is_told(shop: Shop) -> None:
    """Not in logs, nor in what every user of the machine sees of a process."""
    told = shop.node.logs()
    for pod in shop.node.pods.values():
        if pod.process is not None:
            told += Path(f"/proc/{pod.process.pid}/cmdline").read_text()
        told += json.dumps([each.get("args") for _, each in pod.workload.containers()])
    access = shop.node.data("Secret", "users-access")
    secrets = [SECRET, FACTS, access["one-of-them"], shop.key.encode()]
    secrets += [pair for name in ("users-gateway-certificate", "users-styx-tls") for pair in _private(shop, name)]
    assert len(told) > 1_000
    for secret in secrets:
        assert secret.decode() not in told
    assert not re.search(r"styx_[0-9a-z]{8}_[0-9A-Za-z]{20,}|eyJ[\w-]{20,}\.", told)


def _private(shop: Shop, name: str) -> list[bytes]:
    return [line for line in shop.node.data("Secret", name)["tls.key"].splitlines() if b"---" not in line]


def test_workers_drain_at_their_end(shop: Shop) -> None:
    """The hook before a pod's end, in the pod's own environment; it goes last, since the worker does not come back."""
    worker = shop.node.pod("styx-worker-1")
    words = worker.container["lifecycle"]["preStop"]["exec"]["command"]
    done = worker.run(words)
    assert done.returncode == 0, done.stdout
    assert worker.end() == 0
    assert shop.ask("POST", "/v1/account/carol/open", "[1]", **bearer(shop.key)).status == 200
