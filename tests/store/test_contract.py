"""Each store does what `StoreContract` says."""

from __future__ import annotations

from pathlib import Path
from uuid import uuid4

import pytest

from styx.store import DirectoryStore, MemoryStore, Store
from styx.store.s3 import S3Store
from tests.real_services import RealMinio
from tests.store.store_contract import StoreContract


class TestMemoryStore(StoreContract):
    @pytest.fixture
    def store(self) -> Store:
        return MemoryStore()


class TestDirectoryStore(StoreContract):
    @pytest.fixture
    def store(self, tmp_path: Path) -> Store:
        return DirectoryStore(tmp_path / "store")


@pytest.mark.slow
class TestS3Store(StoreContract):
    @pytest.fixture
    def store(self, minio: RealMinio) -> Store:
        return S3Store(minio.endpoint, "styx", f"tests/{uuid4()}", minio.access_key, minio.secret_key, secure=False)


@pytest.mark.slow
class TestS3StoreOfAWholeBucket(StoreContract):
    @pytest.fixture
    def store(self, minio: RealMinio) -> Store:
        return S3Store(minio.endpoint, f"styx-{uuid4()}", "", minio.access_key, minio.secret_key, secure=False)
