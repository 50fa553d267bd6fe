"""Releases as they are without a word about keys: with the key that the chart makes, and anonymous; run as in
`test_run.py`.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.kubernetes.charts import CHARTS, rendered
from tests.kubernetes.guarded_shop import bearer, external, s3_keys
from tests.kubernetes.node import Node, ask
from tests.real_services import RealKafka, RealMinio

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform != "linux", reason="pods' addresses are below 127.0.0.0/8, which only Linux has"),
]
APP = """
from styx import App, Context, Operator
counter = Operator("counter", state_type=int)

@counter.register
async def count(ctx: Context) -> int:
    value = (await ctx.get() or 0)
    await ctx.put(value + 1)
    return value + 1

app = App("mounted", [counter])
"""


@contextmanager
def running(
    folder: Path, kafka: RealKafka, minio: RealMinio, helm: Path, values: dict[str, Any], *files: str
) -> Iterator[Node]:
    own = folder / "values.json"
    own.write_text(json.dumps(external(kafka, minio) | {"gateway": {"replicas": 1}} | values))
    names = [*(f"{CHARTS}/styx/ci/{each}.yaml" for each in files), str(own)]
    manifests = rendered(helm, "styx", *(word for name in names for word in ("--values", name)))
    node = Node(folder / "node", manifests, {("Secret", "users-s3"): s3_keys(minio)})
    with node.running():
        yield node


def test_the_key_that_the_chart_makes(kafka: RealKafka, minio: RealMinio, helm: Path, tmp_path: Path) -> None:
    """`helm test` and the benchmark's Job have what they need of it."""
    small = {"enabled": True, "rate": 20, "duration": 2, "clients": 1, "args": ["--keys", "100"]}
    values = {"benchmark": small, "gateway": {"replicas": 2}}
    with running(tmp_path, kafka, minio, helm, values, "benchmark-ycsbt") as node:
        gateways = [(node.pod(f"styx-gateway-{number}").address, 8080) for number in (0, 1)]
        key = node.data("Secret", "r1-styx-access")["api-key"].decode()
        token = node.data("Secret", "r1-styx-access")["facts-token"].decode()
        for gateway in gateways:
            assert ask(gateway, "GET", "/openapi.json").status == 401
            assert ask(gateway, "GET", "/openapi.json", bearer(key)).status == 200
        for name, port in (("coordinator", 8081), ("worker", 8082)):
            facts = (node.pod(f"styx-{name}-0").address, port)
            assert ask(facts, "GET", "/metrics").status == 401
            assert ask(facts, "GET", "/metrics", bearer(key)).status == 401
            assert ask(facts, "GET", "/metrics", bearer(token)).status == 200
        for name in ("styx-test-smoke-0", "styx-benchmark-1-0"):
            pod = node.pod(name)
            done = pod.run(pod.command(pod.container))
            assert done.returncode == 0, done.stdout
        told = node.logs()
        for secret in (key, token, node.data("Secret", "r1-styx")["secret"].decode()):
            assert secret not in told


def test_an_anonymous_release_of_a_mounted_app(kafka: RealKafka, minio: RealMinio, helm: Path, tmp_path: Path) -> None:
    """Whoever reaches its gateways is served; facts ask for a token all the same."""
    values = {"app": {"module": "counting:app", "files": {"counting.py": APP}}, "worker": {"replicas": 1}}
    with running(tmp_path, kafka, minio, helm, values, "anonymous") as node:
        gateway = (node.pod("styx-gateway-0").address, 8080)
        sent = {"Content-Type": "application/json"}
        assert json.loads(ask(gateway, "POST", "/v1/counter/a/count", sent, b"[]").body)["result"] == 1
        assert ask(gateway, "GET", "/metrics", {"Host": "r1-styx-gateway:8080"}).status == 200
        assert ask(gateway, "GET", "/metrics", {"Host": "elsewhere.example"}).status == 403
        assert ask((node.pod("styx-worker-0").address, 8082), "GET", "/metrics").status == 401
        smoke = node.pod("styx-test-smoke-0")
        done = smoke.run(smoke.command(smoke.container))
        assert done.returncode == 0, done.stdout
        assert "app mounted" in done.stdout
