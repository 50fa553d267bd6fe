"""From a URL to a client, or to an error that says what URLs there are."""

import sys
from typing import Any

import pytest

import styx
from styx import App, ConfigurationError
from styx.client.http import HttpClient
from styx.client.kafka.client import KafkaClient


@pytest.mark.parametrize("url", ["http://127.0.0.1:8080", "https://example.test/prefix/", "http://[::1]:80"])
def test_http(url: str) -> None:
    assert isinstance(styx.connect(url), HttpClient)
    assert isinstance(styx.connect(url, app="bank"), HttpClient)
    assert isinstance(styx.connect(url, App("bank", operators=[])), HttpClient)


@pytest.mark.parametrize("app", ["bank", App("bank", operators=[])])
def test_kafka(app: App | str) -> None:
    assert isinstance(styx.connect("kafka://127.0.0.1:9092,127.0.0.1:9093", app), KafkaClient)


@pytest.mark.parametrize(
    ("url", "app", "why"),
    [("kafka://x/y", "bank", "not a Kafka address"), ("kafka://x", "big bank", "it must be 1 to")],
)
def test_kafka_refused(url: str, app: str, why: str) -> None:
    with pytest.raises(ConfigurationError, match=why):
        styx.connect(url, app)


@pytest.mark.parametrize("connect", [styx.connect, styx.connect_sync])
@pytest.mark.parametrize(
    ("url", "why"),
    [
        ("kafka://127.0.0.1:9092", "needs the app or its name"),
        ("127.0.0.1:8080", "http://"),
        ("ftp://x", "http://"),
        ("", "http://"),
        (None, "http://"),
        ("http://", "no gateway's URL"),
        ("http://x?y=1", "no gateway's URL"),
    ],
)
def test_refused(connect: Any, url: Any, why: str) -> None:
    with pytest.raises(ConfigurationError, match=why):
        connect(url)


@pytest.mark.parametrize("connect", [styx.connect, styx.connect_sync])
@pytest.mark.parametrize("module", ["aiohttp", "yarl"])
def test_missing_extra(monkeypatch: pytest.MonkeyPatch, connect: Any, module: str) -> None:
    for name in ("styx.client.http", "styx.client.sync"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(ConfigurationError, match=rf"HTTP client lacks {module}: pip install 'styx-dataflow\[client\]'"):
        connect("http://127.0.0.1:8080")


def test_missing_kafka_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.startswith(("styx.client.kafka", "styx.kafka"))]:
        monkeypatch.delitem(sys.modules, name)
    for package in (
        sys.modules["styx"],
        sys.modules["styx.client"],
    ):  # what is imported anew takes these names, and must give them back
        if hasattr(package, "kafka"):
            monkeypatch.setattr(package, "kafka", package.kafka)
    monkeypatch.setitem(sys.modules, "aiokafka", None)
    with pytest.raises(ConfigurationError, match=r"Kafka client lacks aiokafka: pip install 'styx-dataflow\[kafka\]'"):
        styx.connect("kafka://127.0.0.1:9092", "bank")


@pytest.mark.parametrize("connect", [styx.connect, styx.connect_sync])
@pytest.mark.parametrize("url", ["http://me:hunter2@x", "https://hunter2@x/", "kafka://me:hunter2@x:9092"])
def test_no_password_in_a_url(connect: Any, url: str) -> None:
    with pytest.raises(ConfigurationError, match="with a user or a password in it is not taken") as caught:
        connect(url, "bank")
    assert "hunter2" not in str(caught.value)
