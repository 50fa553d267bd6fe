"""`styx ingest` up to where it would start: help, where the topics are, and what is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from styx.cli.exit_codes import CommandFailed
from styx.cli.ingest import PASSWORD_VARIABLE, USERNAME_VARIABLE, sources_of
from styx.errors import ConfigurationError
from tests.cli.conftest import Styx

LOG = ["--log", "kafka://127.0.0.1:1"]


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("STYX_SECRET", "STYX_SECRET_FILE", "STYX_LOG", "STYX_INGEST_FROM"):
        monkeypatch.delenv(name, raising=False)


def test_help_needs_no_manual(styx: Styx) -> None:
    ran = styx("ingest", "--help")
    assert ran.status == 0
    for text in ("STYX_LOG", "STYX_INGEST_FROM", USERNAME_VARIABLE, "STYX_HTTP_PORT", "Examples:", "Exit codes:"):
        assert text in ran.out


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        ([], "--log"),
        (["--log", "127.0.0.1:9092"], "is not a Kafka address"),
        (LOG, "the cluster's secret is not set"),
        ([*LOG, "--coordinator", "nowhere"], "nowhere"),
        ([*LOG, "bank:app"], "bank:app"),
    ],
)
def test_wrong_options_are_refused(styx: Styx, words: list[str], complaint: str) -> None:
    ran = styx("ingest", *words)
    assert ran.status == 2
    assert complaint in ran.err


@pytest.mark.parametrize(
    ("given", "complaint"),
    [
        (("bank:9092",), "--from is kafka://HOST:PORT or INGEST=kafka://HOST:PORT, got 'bank:9092'"),
        (("=kafka://bank:9092",), "--from is"),
        (("payments=",), "--from is"),
        (("payments=bank:9092",), "is not a Kafka address"),
        (("kafka://",), "is not a Kafka address"),
        (("kafka://user:secret@bank:9092",), "Put no user name"),
        (("kafka://a:1", "kafka://b:1"), "--from says twice where all topics are"),
        (("payments=kafka://a:1", "payments=kafka://b:1"), "--from says twice where payments are"),
        (("kafka://a:1?protocol=SASL_SSL",), "needs STYX_INGEST_KAFKA_USERNAME and STYX_INGEST_KAFKA_PASSWORD"),
        (("kafka://a:1?protocol=TLS",), "must be one of"),
    ],
)
def test_wrong_places_of_topics_are_refused(given: tuple[str, ...], complaint: str) -> None:
    with pytest.raises((CommandFailed, ConfigurationError)) as told:
        sources_of(given, {"STYX_KAFKA_USERNAME": "styx", "STYX_KAFKA_PASSWORD": "ours"})
    assert complaint in str(getattr(told.value, "message", told.value))


def test_the_logs_login_is_never_shown_to_others() -> None:
    environment = {
        "STYX_KAFKA_USERNAME": "styx",
        "STYX_KAFKA_PASSWORD": "ours",
        USERNAME_VARIABLE: "reader",
        PASSWORD_VARIABLE: "theirs",
    }
    found = sources_of(("kafka://a:1?protocol=SASL_SSL", "payments=kafka://b:1"), environment)
    assert (found[""].bootstrap, found[""].username, found[""].password) == ("a:1", "reader", "theirs")
    assert found["payments"].bootstrap == "b:1"
    assert sources_of((), environment) == {}
