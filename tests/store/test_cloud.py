"""What the stores of Google Cloud and Azure make of answers that a service gives at bad times only."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from io import BytesIO
from typing import NamedTuple

import pytest

from styx.errors import ConfigurationError
from styx.store import NotFound, Store, open_reader, open_store
from styx.store.cloud import ATTEMPTS_MAX
from tests.store.fake_azure import fake_azure
from tests.store.fake_s3 import FakeS3, Request, fake_s3

KEY = "bm8gc2VjcmV0"


class Service(NamedTuple):
    server: FakeS3
    url: str
    options: dict[str, str]

    def open(self) -> Store:
        return open_store(self.url, **self.options)


SERVICES: dict[str, Callable[[], AbstractContextManager[FakeS3]]] = {"gs": fake_s3, "az": fake_azure}


@pytest.fixture(params=SERVICES)
def service(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[Service]:
    monkeypatch.setattr("styx.store.cloud.BACKOFF_S", 0.001)
    with SERVICES[request.param]() as server:
        options = {"endpoint": f"http://{server.endpoint}"}
        if request.param == "az":
            options |= {"account": "bank", "account_key": KEY}
        yield Service(server, f"{request.param}://bucket/folder", options)


@pytest.fixture
def store(service: Service) -> Store:
    store = service.open()
    service.server.requests.clear()
    return store


def test_a_listing_has_all_pages(service: Service, store: Store) -> None:
    service.server.page = 3
    names = [f"a/{number}" for number in range(8)]
    for name in names:
        store.put(name, b"")
    service.server.requests.clear()
    assert store.list("a/") == names
    assert len(service.server.requests) == 3


def test_others_in_the_bucket_are_not_listed(service: Service, store: Store) -> None:
    service.server.objects.update({"folder/.x/y": b"", "folder/b": b"", "folders/b": b"", "other": b""})
    assert store.list("") == ["b"]


def test_an_overloaded_service_is_asked_again(service: Service, store: Store) -> None:
    store.put("a", b"x")
    service.server.requests.clear()
    service.server.script.extend([lambda request: request.fail(503, "SlowDown")] * (ATTEMPTS_MAX - 1))
    assert store.get("a") == b"x"
    assert len(service.server.requests) == ATTEMPTS_MAX


def test_a_service_that_stays_overloaded_is_an_os_error_with_its_words(service: Service, store: Store) -> None:
    service.server.script.extend([lambda request: request.fail(503, "SlowDown", "Reduce your rate")] * ATTEMPTS_MAX)
    with pytest.raises(OSError, match=r"cannot put 'a' in the .*503.*Is the service reachable from here") as caught:
        store.put("a", b"x")
    assert not isinstance(caught.value, ConfigurationError)
    assert len(service.server.requests) == ATTEMPTS_MAX


@pytest.mark.parametrize("status", [401, 403])
def test_a_refusal_says_what_to_allow_and_is_an_os_error_too(service: Service, store: Store, status: int) -> None:
    for use in (lambda: store.get("a"), lambda: store.put("a", b""), lambda: store.list("")):
        service.server.script.extend([lambda request: request.fail(status, "Denied")])
        with pytest.raises(ConfigurationError, match=r"let this login .*: (roles/storage|Storage Blob)") as caught:
            use()
        assert isinstance(caught.value, OSError)


def test_a_bucket_that_is_not_there_is_told_at_opening(service: Service) -> None:
    service.server.script.append(lambda request: request.fail(404, "NoSuchBucket"))
    with pytest.raises(ConfigurationError, match=r"cannot open the .*: create it first"):
        service.open()
    assert [request.partition(" ")[0] for request in service.server.requests] == ["GET"]


def test_a_service_out_of_reach_is_an_os_error(service: Service) -> None:
    options = {**service.options, "endpoint": "http://127.0.0.1:1"}
    with pytest.raises(OSError, match=r"cannot open .*reachable"):
        open_store(service.url, **options)


def test_a_service_that_says_nothing_is_given_up(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("styx.store.cloud.READ_TIMEOUT_S", 0.05)
    monkeypatch.setattr("styx.store.cloud.ATTEMPTS_MAX", 1)
    store = service.open()
    over = threading.Event()

    def hang(request: Request) -> None:
        over.wait()
        request.hang_up()

    service.server.script.append(hang)
    try:
        with pytest.raises(OSError, match="cannot put 'a' in"):
            store.put("a", b"")
    finally:
        over.set()


def test_a_put_new_whose_answer_was_lost_is_told_that_it_is_stored(service: Service, store: Store) -> None:
    def serve_and_hang_up(request: Request) -> None:
        request.wfile = BytesIO()
        request.serve()
        request.hang_up()

    service.server.script.append(serve_and_hang_up)
    try:
        stored = store.put_new("a", b"mine")
    except OSError:
        stored = store.put_new("a", b"mine")
    assert stored
    assert not store.put_new("a", b"another's")


def test_an_object_deleted_before_it_could_be_compared_was_another(service: Service, store: Store) -> None:
    status = 412 if service.url.startswith("gs") else 409
    service.server.script.append(lambda request: request.fail(status, "Exists"))
    assert not store.put_new("a", b"1")
    with pytest.raises(NotFound):
        store.get("a")


def test_a_large_object_goes_in_parts(service: Service, store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("styx.store.cloud.PART_BYTES", 5)
    store.put("a", b"0123456789ab")
    assert service.server.objects == {"folder/a": b"0123456789ab"}
    assert len(service.server.requests) > 3
    assert service.server.uploads == {}


def test_a_put_in_parts_that_fails_leaves_nothing(
    service: Service, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("styx.store.cloud.PART_BYTES", 5)
    parts: list[str] = []

    def fail_parts(request: Request) -> None:
        if request.command == "PUT" and request.body == b"56789":
            parts.append(request.path)
            request.fail(403, "Denied")
        else:
            request.serve()

    service.server.script.extend([fail_parts] * 20)
    with pytest.raises(OSError, match="cannot put 'a' in"):
        store.put("a", b"0123456789ab")
    assert parts
    assert service.server.objects == {}
    if service.url.startswith("gs"):
        assert service.server.uploads == {}  # Azure has no way to abort: uncommitted blocks go after a week


def test_a_reader_only_reads(service: Service) -> None:
    service.open().put("a", b"1")
    service.server.requests.clear()
    reader = open_reader(service.url, **service.options)
    assert (reader.list(""), reader.get("a"), reader.get_range("a", 0, 1)) == (["a"], b"1", b"1")
    assert {request.partition(" ")[0] for request in service.server.requests} == {"GET"}


@pytest.mark.parametrize(
    ("url", "options", "problem"),
    [
        ("gs://bucket", {"service_account_key": "{}"}, "there cannot be the bucket 'bucket' of Google Cloud Storage"),
        ("az://container", {}, r"the store az://container needs the account"),
        ("az://container", {"account": "a", "account_key": "no base64"}, "there cannot be the container 'container'"),
        ("gs:///prefix", {}, r"names no bucket\. Use gs://BUCKET/PREFIX"),
    ],
)
def test_wrong_options_are_told_before_anything_is_sent(url: str, options: dict[str, str], problem: str) -> None:
    with pytest.raises(ConfigurationError, match=problem):
        open_store(url, **options)
