"""What the S3 store makes of answers that a real server gives at bad times only."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from styx.errors import ConfigurationError
from styx.store import NotFound
from styx.store.s3 import ATTEMPTS_MAX, CONFLICTS_MAX, S3Store
from tests.store.fake_s3 import FakeS3, Request, fake_s3

PART_BYTES_MIN = 5 * 1024**2
"""S3's own."""


@pytest.fixture
def s3(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeS3]:
    monkeypatch.setattr("styx.store.s3.BACKOFF_S", 0.0)
    with fake_s3() as server:
        yield server


@pytest.fixture
def store(s3: FakeS3) -> S3Store:
    store = opened(s3)
    s3.requests.clear()
    return store


def opened(s3: FakeS3) -> S3Store:
    return S3Store(s3.endpoint, "bucket", "folder", "key", "secret", secure=False, region="here")


def after_serving_hang_up(request: Request) -> None:
    # What is written is not sent before the buffer is flushed, and it is not flushed.
    request.s3.objects[request.path.removeprefix("/bucket/")] = request.body
    request.hang_up()


def cut_off(request: Request) -> None:
    request.answer(200, b"who", length=5)
    request.hang_up()


def test_an_answer_cut_off_is_no_content(s3: FakeS3, store: S3Store) -> None:
    store.put("a", b"whole")
    s3.script.append(cut_off)
    with pytest.raises(OSError, match=r"cannot get 'a' from the bucket 'bucket' at http://127\.0\.0\.1"):
        store.get("a")
    assert store.get("a") == b"whole"


def test_an_overloaded_server_is_asked_again_without_the_wait_it_asks_for(s3: FakeS3, store: S3Store) -> None:
    s3.objects["folder/a"] = b"x"
    s3.script.extend([lambda request: request.fail(503, "SlowDown", retry_after="600")] * (ATTEMPTS_MAX - 1))
    assert store.get("a") == b"x"
    assert len(s3.requests) == ATTEMPTS_MAX


def test_a_server_that_stays_overloaded_is_an_os_error_with_its_words(s3: FakeS3, store: S3Store) -> None:
    s3.script.extend([lambda request: request.fail(503, "SlowDown", "Please reduce your rate")] * ATTEMPTS_MAX)
    with pytest.raises(OSError, match="SlowDown: Please reduce your rate") as caught:
        store.put("a", b"x")
    assert not isinstance(caught.value, ConfigurationError)
    assert len(s3.requests) == ATTEMPTS_MAX


def test_a_request_that_is_cut_off_is_left_to_the_caller(s3: FakeS3, store: S3Store) -> None:
    s3.script.append(Request.hang_up)
    with pytest.raises(OSError, match="cannot delete 'a' from"):
        store.delete("a")
    assert len(s3.requests) == 1


def test_a_server_that_says_nothing_is_given_up(s3: FakeS3, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("styx.store.s3.READ_TIMEOUT_S", 0.05)
    store = opened(s3)
    over = threading.Event()

    def hang(request: Request) -> None:
        over.wait()
        request.hang_up()

    s3.script.append(hang)
    try:
        with pytest.raises(OSError, match="Read timed out"):
            store.put("a", b"")
    finally:
        over.set()


@pytest.mark.parametrize(
    ("status", "code", "advice"),
    [
        (403, "InvalidAccessKeyId", "check the access key"),
        (403, "SignatureDoesNotMatch", "check the access key and the secret key"),
        (403, "AccessDenied", "may not do this"),
        (403, "SomethingNew", "may not do this"),
        (403, "RequestTimeTooSkewed", "clocks of this machine and of the server"),
        (400, "AuthorizationHeaderMalformed", "give its region"),
        (404, "NoSuchBucket", "create it"),
    ],
)
def test_a_refusal_says_what_to_change_and_is_an_os_error_too(
    s3: FakeS3, store: S3Store, status: int, code: str, advice: str
) -> None:
    s3.script.append(lambda request: request.fail(status, code, "as the server puts it"))
    with pytest.raises(ConfigurationError, match=f"{advice}.*{code}: as the server puts it") as caught:
        store.list("")
    assert isinstance(caught.value, OSError)


@pytest.mark.parametrize(("status", "body"), [(404, b""), (404, b"<html>"), (200, b"Hello"), (200, b"<html></html>")])
def test_something_that_is_no_s3_server_is_named_as_that(s3: FakeS3, store: S3Store, status: int, body: bytes) -> None:
    s3.script.append(lambda request: request.answer(status, body))
    with pytest.raises(OSError, match="Is this the address of an S3 server"):
        store.list("")


def test_an_object_over_the_size_of_one_put_is_refused_unsent(
    s3: FakeS3, store: S3Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("styx.store.s3.PUT_BYTES_MAX", 3)
    store.put("a", b"123")
    with pytest.raises(OSError, match="has 4 bytes"):
        store.put("a", b"1234")
    assert s3.objects == {"folder/a": b"123"}
    monkeypatch.setattr("styx.store.s3.MULTIPART_BYTES_MIN", 0)
    monkeypatch.setattr("styx.store.s3.OBJECT_BYTES_MAX", 2)
    with pytest.raises(OSError, match="has 3 bytes"):
        store.put("a", b"345")
    assert s3.objects == {"folder/a": b"123"}


@pytest.fixture
def large(monkeypatch: pytest.MonkeyPatch) -> bytes:
    """The smallest object that goes in three parts."""
    monkeypatch.setattr("styx.store.s3.PART_BYTES", PART_BYTES_MIN)
    monkeypatch.setattr("styx.store.s3.MULTIPART_BYTES_MIN", 2 * PART_BYTES_MIN + 1)
    return bytes(range(256)) * (PART_BYTES_MIN // 128) + b"."


def test_a_large_object_goes_in_parts(s3: FakeS3, store: S3Store, large: bytes) -> None:
    store.put("a", large[:-1])
    assert [request.partition(" ")[0] for request in s3.requests] == ["PUT"]
    s3.requests.clear()
    store.put("b", large)
    assert [request.partition(" ")[0] for request in s3.requests] == ["POST", "PUT", "PUT", "PUT", "POST"]
    assert s3.objects == {"folder/a": large[:-1], "folder/b": large}
    assert s3.uploads == {}


@pytest.mark.parametrize("failing", ["part", "end"])
def test_an_upload_in_parts_that_fails_is_aborted(s3: FakeS3, store: S3Store, large: bytes, failing: str) -> None:
    def answer(request: Request) -> None:
        is_failing = request.body == b"." if failing == "part" else request.body.startswith(b"<")
        if is_failing and request.command != "DELETE":
            request.fail(403, "AccessDenied")
        else:
            request.serve()

    s3.script.extend([answer] * 6)
    with pytest.raises(OSError, match=r"cannot put 'a' in .*AccessDenied"):
        store.put("a", large)
    assert s3.requests[-1].startswith("DELETE ")
    assert (s3.objects, s3.uploads) == ({}, {})


def test_others_in_the_bucket_are_not_listed(s3: FakeS3, store: S3Store) -> None:
    s3.objects.update({"folder/": b"", "folder/a/": b"", "folder/a//b": b"", "folder/.x/y": b"", "folder/b": b""})
    assert store.list("") == ["b"]


def test_whether_the_server_has_conditions_is_asked_once_and_leaves_nothing(s3: FakeS3, store: S3Store) -> None:
    assert store.put_new("a", b"1")
    assert list(s3.objects) == ["folder/a"]
    s3.requests.clear()
    assert store.put_new("b", b"1")
    assert s3.requests == ["PUT /bucket/folder/b"]


@pytest.mark.parametrize("fault", ["lacks_condition", "ignores_condition"])
def test_a_server_without_conditions_is_looked_at_first_and_reported_once(
    s3: FakeS3, store: S3Store, caplog: pytest.LogCaptureFixture, fault: str
) -> None:
    setattr(s3, fault, True)
    assert store.put_new("a", b"first")
    assert not store.put_new("a", b"second")
    assert store.put_new("a", b"first")
    assert s3.objects == {"folder/a": b"first"}
    assert [record.message for record in caplog.records if "If-None-Match" in record.message] == [
        f"the bucket 'bucket' at http://{s3.endpoint} does not know PUT with If-None-Match: two processes that create "
        "one object at the same moment may both be told that they did. Use a server that knows it, such as MinIO or AWS"
    ]


def test_a_put_new_whose_answer_was_lost_is_told_at_its_repetition_that_it_is_stored(
    s3: FakeS3, store: S3Store
) -> None:
    store.put_new("before", b"")
    s3.script.append(after_serving_hang_up)
    with pytest.raises(OSError, match="cannot put 'a', if it is new, in"):
        store.put_new("a", b"mine")
    assert store.put_new("a", b"mine")
    assert not store.put_new("a", b"another's")


def test_a_conflict_with_another_conditional_put_is_tried_again(s3: FakeS3, store: S3Store) -> None:
    store.put_new("before", b"")
    conflict = [lambda request: request.fail(409, "ConditionalRequestConflict")]
    s3.script.extend(conflict * (CONFLICTS_MAX - 1))
    assert store.put_new("a", b"1")
    s3.script.extend(conflict * CONFLICTS_MAX)
    with pytest.raises(OSError, match="others kept storing it"):
        store.put_new("b", b"1")


def test_an_object_deleted_before_it_could_be_compared_was_another(s3: FakeS3, store: S3Store) -> None:
    store.put_new("before", b"")
    s3.script.append(lambda request: request.fail(412, "PreconditionFailed"))
    assert not store.put_new("a", b"1")
    with pytest.raises(NotFound):
        store.get("a")


def test_a_prefix_that_leaves_too_little_for_a_name_is_said(s3: FakeS3) -> None:
    store = S3Store(s3.endpoint, "bucket", "/".join(["x" * 200] * 5), "key", "secret", secure=False)
    with pytest.raises(ValueError, match="over 1024 bytes"):
        store.put("y" * 50, b"")
