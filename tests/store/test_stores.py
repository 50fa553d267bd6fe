"""Stores by their URL: which store it is, and what is said about a URL that is none."""

from __future__ import annotations

import sys
import tomllib
from pathlib import Path

import pytest

from styx.errors import ConfigurationError
from styx.store import DirectoryStore, open_reader, open_store
from styx.store.s3 import S3Store
from styx.store.stores import STORES
from tests.store.fake_s3 import fake_s3


def test_a_file_url_is_a_directory(tmp_path: Path) -> None:
    store = open_store(f"{tmp_path.as_uri()}/a%20b")
    assert isinstance(store, DirectoryStore)
    store.put("x", b"1")
    assert (tmp_path / "a b" / "x").read_bytes() == b"1"


@pytest.mark.parametrize(("path", "key"), [("", "x"), ("/", "x"), ("/pre", "pre/x"), ("/p%20q/r/", "p q/r/x")], ids=str)
def test_an_s3_url_is_a_bucket_and_a_prefix(path: str, key: str) -> None:
    with fake_s3() as s3:
        store = open_store(
            f"s3://bucket{path}", endpoint=f"http://{s3.endpoint}", access_key="a", secret_key="b", region="here"
        )
        assert isinstance(store, S3Store)
        store.put("x", b"1")
        assert s3.objects == {key: b"1"}
        assert s3.requests[-1].startswith("PUT /bucket/")


@pytest.mark.parametrize(
    ("url", "problem"),
    [
        ("", "is not the URL of a store. Use s3://BUCKET/PREFIX, gs:"),
        ("/data", "is not the URL of a store"),
        ("http://host/bucket", "is not the URL of a store"),
        ("file://data/x", "three slashes"),
        ("file:data", "three slashes"),
        ("file:///a?b", "more than an address"),
        ("s3:///prefix", "names no bucket"),
        ("s3://bucket:9000/prefix", "names no bucket"),
        ("s3://user@bucket/prefix", "more than an address"),
        ("s3://bucket/../x", "starts with a dot"),
        ("s3://bucket/a//b", "is empty"),
        ("s3://[bucket/x", "is not the URL of a store"),
    ],
)
def test_a_bad_url_is_refused_with_a_reason(url: str, problem: str) -> None:
    with pytest.raises(ConfigurationError, match=problem):
        open_store(url, endpoint="http://127.0.0.1:9", access_key="a", secret_key="b")


@pytest.mark.parametrize("missing", ["endpoint", "access_key", "secret_key"])
@pytest.mark.parametrize("value", [None, ""])
def test_what_s3_needs_is_named(missing: str, value: str | None) -> None:
    options = {"endpoint": "http://127.0.0.1:9", "access_key": "a", "secret_key": "b", missing: value}
    with pytest.raises(ConfigurationError, match=f"the store s3://bucket needs the {missing.replace('_', ' ')} of"):
        open_store("s3://bucket", **options)


@pytest.mark.parametrize(
    "endpoint", ["127.0.0.1:9000", "host", "s3://host", "http://", "http://host/path", "http://host:port", "http://a?b"]
)
def test_a_bad_endpoint_is_refused_with_a_reason(endpoint: str) -> None:
    with pytest.raises(ConfigurationError, match=r"is not the endpoint of an S3 server.*http://HOST:PORT"):
        open_store("s3://bucket", endpoint=endpoint, access_key="a", secret_key="b")


def test_without_the_library_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "styx.store.s3")
    monkeypatch.setitem(sys.modules, "minio", None)
    with pytest.raises(ConfigurationError, match=r"'s3://bucket' lacks minio: pip install 'styx-dataflow\[s3\]'"):
        open_store("s3://bucket", endpoint="http://127.0.0.1:9", access_key="a", secret_key="b")


def test_a_reader_makes_nothing(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="names no directory that there is"):
        open_reader(f"{tmp_path.as_uri()}/a")
    (tmp_path / "a").mkdir()
    assert open_reader(f"{tmp_path.as_uri()}/a").list("") == []
    assert list(tmp_path.rglob("*")) == [tmp_path / "a"]
    (tmp_path / "a").rmdir()
    (tmp_path / "a").touch()
    with pytest.raises(ConfigurationError, match="names no directory that there is"):
        open_reader(f"{tmp_path.as_uri()}/a")
    with fake_s3() as s3:
        s3.script.append(lambda request: request.fail(404, "NoSuchBucket"))
        with pytest.raises(ConfigurationError, match="there is no such bucket"):
            open_reader(
                "s3://bucket/a", endpoint=f"http://{s3.endpoint}", access_key="a", secret_key="b", region="here"
            )
        assert [request.partition(" ")[0] for request in s3.requests] == ["GET"]


def test_an_option_that_no_store_has_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="no store has an option 'endpont'"):
        open_store(tmp_path.as_uri(), endpont="http://127.0.0.1:9")


@pytest.mark.parametrize("scheme", STORES)
def test_a_registered_store_has_what_the_registry_says(scheme: str) -> None:
    kind = STORES[scheme]
    assert kind.usage.startswith(f"{scheme}://")
    assert callable(kind.opener(kind.usage))
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())["project"]
    assert kind.extra in ("", *project["optional-dependencies"])
    plain = [option for option in kind.options if not option.secret]
    assert all(option.help.endswith(".") for option in plain)
