"""Fixtures of the transport's tests: both event loops, a cluster's security, and connected pairs."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest

from styx.transport import Security, TlsFiles
from tests.transport.peers import SECRET


@pytest.fixture(params=[False, True], ids=["asyncio", "uvloop"])
def anyio_backend(request: pytest.FixtureRequest) -> tuple[str, dict[str, Any]]:
    return "asyncio", {"use_uvloop": request.param}


@pytest.fixture
def security() -> Security:
    return Security(SECRET, "c1")


class Authority:
    """A certificate authority made for one test run."""

    def __init__(self, directory: Path, name: str) -> None:
        self._directory = directory
        self.certificate = directory / f"{name}.pem"
        self._key = directory / f"{name}.key"
        self._name = name
        self._openssl("req", "-x509", "-subj", f"/CN={name}", "-days", "2", "-out", self.certificate, key=self._key)

    def files(self, name: str, host: str = "elsewhere.invalid", **options: bool) -> TlsFiles:
        """Files of a process whose certificate names `host`."""
        certificate, key = self._directory / f"{self._name}-{name}.pem", self._directory / f"{self._name}-{name}.key"
        signed_by = f"-CA {self.certificate} -CAkey {self._key} -days 2".split()
        subject = ["-subj", f"/CN={name}", "-addext", f"subjectAltName=DNS:{host}"]
        self._openssl("req", "-x509", *subject, *signed_by, "-out", certificate, key=key)
        return TlsFiles(certificate, key, self.certificate, **options)

    def _openssl(self, *arguments: str | Path, key: Path) -> None:
        new_key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout"]
        subprocess.run(["openssl", *arguments, *new_key, key], check=True, capture_output=True)


@pytest.fixture(scope="session")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("authority"), "cluster")


@pytest.fixture(scope="session")
def other_authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("other"), "other")
