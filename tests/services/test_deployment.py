"""What a user types: `scripts/services up`, the settings that it prints, `down`; and `compose.yaml` beside it."""

from __future__ import annotations

import importlib
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
from minio import Minio

from styx.process.ports import free_port
from tests.real_services import SCRIPT

ROOT = SCRIPT.parents[1]


@pytest.mark.slow
@pytest.mark.usefixtures("kafka", "minio")  # so that both are installed
def test_up_prints_the_settings_of_what_runs_then(tmp_path: Path) -> None:
    kafka_port, minio_port = free_port(following=1), free_port()
    environment = {
        **os.environ,
        "STYX_SERVICES_DATA": str(tmp_path),
        "STYX_KAFKA_PORT": str(kafka_port),
        "STYX_MINIO_PORT": str(minio_port),
    }

    def services(*words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run([SCRIPT, *words], check=False, env=environment, capture_output=True, text=True)

    try:
        up = services("up")
        assert up.returncode == 0, up.stderr
        assert up.stdout.split() == [
            *("export", f"STYX_LOG=kafka://127.0.0.1:{kafka_port}"),
            *("export", "STYX_STORE=s3://styx/bank"),
            *("export", f"STYX_S3_ENDPOINT=http://127.0.0.1:{minio_port}"),
            *("export", "STYX_S3_ACCESS_KEY=minioadmin"),
            *("export", "STYX_S3_SECRET_KEY=minioadmin"),
        ]
        client = Minio(f"127.0.0.1:{minio_port}", access_key="minioadmin", secret_key="minioadmin", secure=False)
        assert client.bucket_exists("styx")
        assert services("status").returncode == 0

        pids = [(tmp_path / name / "pid").read_text() for name in ("kafka", "minio")]
        assert services("up").stdout == up.stdout
        assert [(tmp_path / name / "pid").read_text() for name in ("kafka", "minio")] == pids
    finally:
        assert services("down", "--wipe").returncode == 0
    assert services("status").returncode == 3
    assert list(tmp_path.iterdir()) == []


def _compose() -> Any:
    # It ships no types.
    return importlib.import_module("yaml").safe_load((ROOT / "compose.yaml").read_text("utf-8"))


def test_the_broker_in_a_container_has_the_settings_of_the_other_one() -> None:
    lines = (ROOT / "scripts/services.d/kafka/broker.properties").read_text("utf-8").splitlines()
    settings = dict(line.split("=", 1) for line in lines if line and not line.startswith("#"))
    expected = {f"KAFKA_{name.replace('.', '_').upper()}": value for name, value in settings.items()}
    of_the_container = {"HEAP_OPTS", "LISTENERS", "ADVERTISED_LISTENERS", "CONTROLLER_QUORUM_VOTERS", "LOG_DIRS"}

    environment = _compose()["services"]["kafka"]["environment"]

    assert environment == expected | {f"KAFKA_{name}": environment[f"KAFKA_{name}"] for name in of_the_container}
    assert f"KAFKA_HEAP={environment['KAFKA_HEAP_OPTS'].removeprefix('-Xmx')}\n" in (
        ROOT / "scripts/services.d/kafka.sh"
    ).read_text("utf-8")


@pytest.mark.parametrize(("service", "port"), [("kafka", 9092), ("minio", 9000)])
def test_containers_listen_where_the_script_does_and_nowhere_else(service: str, port: int) -> None:
    described = _compose()["services"][service]
    variable = f"${{STYX_{service.upper()}_PORT:-{port}}}"
    (published,) = described["ports"]
    assert published.startswith(f"127.0.0.1:{variable}:")
    assert described["healthcheck"]["test"][0] == "CMD"
