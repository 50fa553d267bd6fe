"""Each store does what `StoreContract` says."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import obstore.store
import pytest

from styx.store import DirectoryStore, MemoryStore, Store, open_store
from styx.store.cloud import CloudStore
from styx.store.s3 import S3Store
from tests.real_services import RealMinio
from tests.store.azurite import azurite_container
from tests.store.fake_azure import fake_azure
from tests.store.fake_s3 import fake_s3
from tests.store.store_contract import StoreContract


class TestMemoryStore(StoreContract):
    @pytest.fixture
    def store(self) -> Store:
        return MemoryStore()


class TestCloudStoreInMemory(StoreContract):
    @pytest.fixture
    def store(self) -> Store:
        return CloudStore(obstore.store.MemoryStore(), "folder", "memory", "")


class TestGoogleCloudStore(StoreContract):
    @pytest.fixture
    def store(self) -> Iterator[Store]:
        with fake_s3() as server:
            yield open_store("gs://bucket/folder", endpoint=f"http://{server.endpoint}")


class TestAzureStore(StoreContract):
    @pytest.fixture
    def store(self) -> Iterator[Store]:
        with fake_azure() as server:
            yield open_store(
                "az://container/folder", account="bank", account_key="a2V5", endpoint=f"http://{server.endpoint}"
            )


@pytest.mark.slow
class TestAzureStoreOnAzurite(StoreContract):
    @pytest.fixture
    def store(self) -> Store:
        url, options = azurite_container()
        return open_store(url, **options)


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
