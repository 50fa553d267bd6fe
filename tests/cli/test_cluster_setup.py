"""What a cluster's processes take from options and environment: secrets, TLS, addresses; and what is refused."""

from pathlib import Path

import pytest

from styx import ConfigurationError
from styx.cli.cluster_setup import process_options, secret_of, security_of
from styx.cli.common_options import DataOptions
from styx.transport import Security

SECRET = "0123456789abcdef"


def test_secret_from_variable_or_file(tmp_path: Path) -> None:
    assert secret_of({"STYX_SECRET": f" {SECRET}\n"}) == SECRET.encode()
    file = tmp_path / "secret"
    file.write_text(SECRET + "\n")
    assert secret_of({"STYX_SECRET_FILE": str(file)}) == SECRET.encode()


@pytest.mark.parametrize(
    ("environment", "complaint"),
    [
        ({}, "is not set.\nMake one for all processes: export STYX_SECRET=$(openssl rand -hex 32)"),
        ({"STYX_SECRET": "  "}, "is not set"),
        ({"STYX_SECRET": "0123456789abcde"}, "has 15 bytes; it needs 16"),
        ({"STYX_SECRET": SECRET, "STYX_SECRET_FILE": "x"}, "both STYX_SECRET and STYX_SECRET_FILE"),
        ({"STYX_SECRET_FILE": "/nowhere/secret"}, "cannot be read: No such file"),
    ],
)
def test_no_good_secret(environment: dict[str, str], complaint: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        secret_of(environment)
    assert complaint in str(caught.value)
    assert SECRET not in str(caught.value)


def test_tls_is_all_or_nothing() -> None:
    environment = {"STYX_SECRET": SECRET, "STYX_TLS_CERTIFICATE": "c", "STYX_TLS_KEY": "k"}
    with pytest.raises(ConfigurationError, match="STYX_TLS_AUTHORITY is not set"):
        security_of("x", environment)
    tls = security_of("x", {**environment, "STYX_TLS_AUTHORITY": "a"}).tls
    assert tls is not None
    assert (tls.certificate, tls.key, tls.authority) == ("c", "k", "a")
    assert security_of("x", {"STYX_SECRET": SECRET}).tls is None


def test_what_a_process_is_told(tmp_path: Path) -> None:
    data = DataOptions(log="kafka://h:1", store=f"file://{tmp_path}")
    security = Security(SECRET.encode(), "x")
    options = process_options("w", security, "h:7070", data, "h2", 5, "h3", {})
    assert (options.name, options.coordinator, options.host, options.port) == ("w", "h:7070", "h2", 5)
    assert (options.advertise, options.log.bootstrap) == ("h3", "h:1")
    options.open_store().put("a", b"b")
    assert (tmp_path / "a").exists() or list(tmp_path.rglob("a"))
    assert process_options(None, security, "h:7070", data, "h", 5, environment={}).name


@pytest.mark.parametrize(
    ("coordinator", "log", "complaint"),
    [("nowhere", "kafka://h", "'nowhere' is no address"), ("h:1", "file:///x", "not a Kafka address")],
)
def test_wrong_addresses_are_told_before_anything_starts(coordinator: str, log: str, complaint: str) -> None:
    data = DataOptions(log=log, store="file:///tmp")
    with pytest.raises(ConfigurationError, match=complaint):
        process_options("w", Security(SECRET.encode(), "x"), coordinator, data, "h", 0, environment={})


def test_keys_of_the_store_come_from_the_environment() -> None:
    data = DataOptions(log="kafka://h", store="s3://b/p", options={"s3_endpoint": "http://h:1"})
    security = Security(SECRET.encode(), "x")
    with pytest.raises(ConfigurationError, match=r"s3://b/p needs STYX_S3_SECRET_KEY in the environment\Z"):
        process_options("w", security, "h:1", data, "h", 0, environment={"STYX_S3_ACCESS_KEY": "a"})
    data = DataOptions(log="kafka://h", store="s3://b/p")
    with pytest.raises(ConfigurationError, match="needs --s3-endpoint, or STYX_S3_ENDPOINT in the environment"):
        process_options("w", security, "h:1", data, "h", 0, environment={})


def test_a_url_of_no_store_is_told_before_anything_starts() -> None:
    data = DataOptions(log="kafka://h", store="ftp://b/p")
    with pytest.raises(ConfigurationError, match=r"'ftp://b/p' is not the URL of a store. Use s3://BUCKET/PREFIX, gs:"):
        process_options("w", Security(SECRET.encode(), "x"), "h:1", data, "h", 0, environment={})
