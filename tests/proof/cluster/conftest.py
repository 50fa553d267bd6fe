"""A cluster of real processes under a name of its own, on the servers of this test run."""

from __future__ import annotations

import secrets
from pathlib import Path

import pytest

from proof.cluster import ClusterOptions
from proof.cluster.faults import APP
from tests.real_services import RealKafka, RealMinio


@pytest.fixture
def options(kafka: RealKafka, minio: RealMinio, tmp_path: Path) -> ClusterOptions:
    name = f"cluster-{secrets.token_hex(4)}"
    return ClusterOptions(
        app=APP,
        name=name,
        kafka=kafka.bootstrap,
        store=name,
        s3_endpoint=f"http://{minio.endpoint}",
        directory=tmp_path,
    )
