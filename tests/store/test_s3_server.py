"""The S3 store and a real server: it dies and comes back, is opened wrongly, and holds much."""

from __future__ import annotations

import random
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from uuid import uuid4

import pytest
from minio import Minio

from styx.errors import ConfigurationError
from styx.store import open_store
from styx.store.s3 import MULTIPART_BYTES_MIN, PART_BYTES, S3Store
from tests.real_services import RealMinio

pytestmark = pytest.mark.slow


def opened(minio: RealMinio, prefix: str | None = None) -> S3Store:
    prefix = f"tests/{uuid4()}" if prefix is None else prefix
    return S3Store(minio.endpoint, "styx", prefix, minio.access_key, minio.secret_key, secure=False)


def test_a_server_that_is_killed_is_an_os_error_until_it_is_back(minio: RealMinio) -> None:
    store = opened(minio)
    store.put("a", b"kept")
    assert store.put_new("claim", b"mine")
    minio.kill()
    try:
        for attempt in (
            lambda: store.put("a", b"lost"),
            lambda: store.put_new("claim", b"another's"),
            lambda: store.get("a"),
            lambda: store.get_range("a", 1, 2),
            lambda: store.list(""),
            lambda: store.delete("a"),
            lambda: opened(minio),
        ):
            with pytest.raises(OSError, match="Is the server running"):
                attempt()
    finally:
        minio.start()
    assert store.get("a") == b"kept"
    assert not store.put_new("claim", b"another's")
    assert store.list("") == ["a", "claim"]


def test_large_objects_come_back(minio: RealMinio) -> None:
    store = opened(minio)
    data = random.Random(1).randbytes(64 * 1024 * 1024)
    store.put("large", data)
    # Compared apart: pytest would explain a difference for minutes.
    same = store.get("large") == data
    assert same


def test_a_listing_of_several_pages_is_whole(minio: RealMinio) -> None:
    store = opened(minio)
    names = [f"folder/{number:05}" for number in range(2_100)]
    with ThreadPoolExecutor(16) as threads:
        list(threads.map(lambda name: store.put(name, b""), names))
    assert store.list("") == names
    assert store.list("folder/020") == names[2_000:]


def test_a_large_object_goes_in_parts_and_is_read_by_ranges(minio: RealMinio) -> None:
    store = opened(minio, f"tests/{uuid4()}")
    data = bytes(range(256)) * (MULTIPART_BYTES_MIN // 256) + b"end"
    store.put("a", data)
    assert store.get("a") == data
    assert store.get_range("a", PART_BYTES - 3, 6) == data[PART_BYTES - 3 : PART_BYTES + 3]
    assert store.get_range("a", len(data) - 3, 6) == b"end"
    assert store.list("") == ["a"]
    assert uploads(minio, store) == []


def test_an_upload_in_parts_that_fails_leaves_nothing_on_the_server(
    minio: RealMinio, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = opened(minio, f"tests/{uuid4()}")
    send = Minio._upload_part
    seen: list[list[str]] = []

    def fail_at_the_third(client: Minio, *arguments: Any) -> str:
        if arguments[-1] == 3:
            seen.append(uploads(minio, store))
            raise ValueError("no third part")
        return send(client, *arguments)

    monkeypatch.setattr(Minio, "_upload_part", fail_at_the_third)
    store.put("a", b"before")
    with pytest.raises(OSError, match=r"cannot put 'a' in .*no third part"):
        store.put("a", bytes(MULTIPART_BYTES_MIN))
    assert [len(under_way) for under_way in seen] == [1]
    assert uploads(minio, store) == []
    assert store.get("a") == b"before"


def uploads(minio: RealMinio, store: S3Store) -> list[str]:
    """Uploads of the object `a` that are neither complete nor aborted."""
    client = Minio(minio.endpoint, minio.access_key, minio.secret_key, secure=False)
    listed = client._list_multipart_uploads("styx", prefix=f"{store._folder}a")
    return [each.upload_id or "" for each in listed.uploads]


def test_prefixes_do_not_see_each_other(minio: RealMinio) -> None:
    folder = f"tests/{uuid4()}"
    one, other, above = opened(minio, f"{folder}/a"), opened(minio, f"{folder}/ab"), opened(minio, folder)
    one.put("x", b"1")
    other.put("x", b"2")
    assert (one.list(""), one.get("x"), other.get("x")) == (["x"], b"1", b"2")
    assert above.list("") == ["a/x", "ab/x"]


def test_a_missing_bucket_is_created_and_found_again(minio: RealMinio) -> None:
    bucket = f"styx-{uuid4()}"
    for name in ("a", "b"):
        S3Store(minio.endpoint, bucket, "", minio.access_key, minio.secret_key, secure=False).put(name, b"x")
    store = S3Store(minio.endpoint, bucket, "", minio.access_key, minio.secret_key, secure=False)
    assert store.list("") == ["a", "b"]


@pytest.mark.parametrize(
    ("changes", "advice"),
    [
        ({"access_key": "nobody"}, "does not know the access key"),
        ({"secret_key": "not the one"}, "the secret key does not fit the access key"),
        ({"bucket": "Not_A_Bucket"}, "invalid bucket name"),
        ({"bucket": "x"}, "invalid bucket name"),
        ({"bucket": "1.2.3.4"}, "must not be formatted as an IP address"),
    ],
)
def test_wrong_keys_and_buckets_are_told_at_opening(minio: RealMinio, changes: dict[str, str], advice: str) -> None:
    options = {"bucket": "styx", "access_key": minio.access_key, "secret_key": minio.secret_key, **changes}
    with pytest.raises(ConfigurationError, match=advice):
        open_store(f"s3://{options.pop('bucket')}/prefix", endpoint=f"http://{minio.endpoint}", **options)


def test_tls_to_a_server_without_it_is_an_os_error(minio: RealMinio) -> None:
    with pytest.raises(OSError, match="SSL"):
        open_store("s3://styx", endpoint=f"https://{minio.endpoint}", access_key="a", secret_key="b")
