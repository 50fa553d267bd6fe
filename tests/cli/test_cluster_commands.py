"""The cluster's commands up to where they would start: help, options, variables, and what is refused."""

from pathlib import Path

import pytest

from styx.cli import operator_link, status
from styx.cli.exit_codes import CommandFailed
from styx.cli.run_directory import RunFacts, held, write_facts, write_secret
from styx.cluster.reaching import Unanswered
from styx.cluster.wire import Answer, Deploy, Drain, Rollback, Scale, SetAside
from styx.model.app import App
from styx.transport import Refused, Security
from styx.transport.handshake import Refusal
from tests.cli.conftest import Styx

DATA = ["--log", "kafka://127.0.0.1:1", "--store", "file:///tmp/x"]


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("STYX_SECRET", "STYX_SECRET_FILE", "STYX_LOG", "STYX_STORE"):
        monkeypatch.delenv(name, raising=False)


@pytest.mark.parametrize(
    ("command", "texts"),
    [
        ("coordinator", ["STYX_LOG", "STYX_STORE", "STYX_S3_ENDPOINT", "STYX_SECRET", "STYX_SLOTS", "8081"]),
        ("worker", ["STYX_COORDINATOR", "STYX_ADVERTISE", "STYX_S3_SECRET_KEY", "STYX_TLS_AUTHORITY"]),
        ("gateway", ["STYX_COORDINATOR", "STYX_LOG", "STYX_PORT", "STYX_SECRET_FILE", "STYX_DRAIN"]),
        ("up", ["STYX_WORKERS", "STYX_GATEWAYS", "STYX_STORE", "STYX_RUN_DIR", "styx scale 3"]),
        ("deploy", ["--rollback", "STYX_COORDINATOR"]),
        ("scale", ["styx scale 3", "STYX_COORDINATOR"]),
        ("backup", ["STYX_STORE", "STYX_TO_S3_ENDPOINT", "STYX_TO_S3_SECRET_KEY", "--keep", "are not in the backup"]),
        ("restore", ["--from-secret-file", "STYX_FROM_S3_SECRET_KEY", "--if-empty", "STYX_KAFKA_USERNAME", "is lost"]),
        ("drain", ["STYX_NAME", "STYX_TIMEOUT", "STYX_COORDINATOR", "no worker of this name"]),
        ("status", ["--json", "--watch", "STYX_STATUS_URL"]),
    ],
)
def test_help_needs_no_manual(styx: Styx, command: str, texts: list[str]) -> None:
    ran = styx(command, "--help")
    assert ran.status == 0
    for text in [*texts, "Examples:", "Exit codes:"]:
        assert text in ran.out
    assert "--secret " not in ran.out, "a secret is never an argument"


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (["coordinator", *DATA], "--app-name NAME or --app MODULE:APP"),
        (["coordinator", *DATA, "--app-name", "x"], "the cluster's secret is not set"),
        (["coordinator", *DATA, "--app-name", "x", "--slots", "0"], "--slots is a number from 1"),
        (["coordinator", *DATA, "--app-name", "x", "--workers", "17"], "--workers is a number from 1 to 16"),
        (["coordinator", *DATA, "--app-name", "x", "--silence", "0"], "--silence"),
        (["coordinator", "--app-name", "x"], "--log"),
        (["worker", *DATA], "the cluster's secret is not set"),
        (["worker", *DATA, "--host", "0.0.0.0"], "give --advertise the host"),
        (["worker", *DATA, "--drain", "-1"], "--drain is a number of seconds, 0 or more, got -1"),
        (["coordinator", *DATA, "--app-name", "x", "--workers", "auto"], "the cluster's secret is not set"),
        (["coordinator", *DATA, "--app-name", "x", "--workers", "some"], '"some"'),
        (["drain"], "give the worker's NAME, or set STYX_NAME"),
        (["drain", "w", "--timeout", "0"], "--timeout is a number of seconds above 0, got 0"),
        (["gateway", "--log", "kafka://h"], "the cluster's secret is not set"),
        (["gateway"], "--log"),
        (["gateway", "--log", "kafka://h", "--drain", "-1"], "--drain is a number of seconds from 0"),
        (["up", "x:app"], "--log"),
        (["up", "x:app", *DATA, "--gateways", "0"], "--gateways"),
        (["up", "x:app", *DATA, "--port", "70000"], "--port"),
        (["up", "x:app", *DATA], "there is no module 'x'"),
        (["deploy"], "either MODULE:APP or --rollback"),
        (["deploy", "x:app", "--rollback"], "either MODULE:APP or --rollback"),
        (["deploy", "--rollback"], "no styx up runs in this directory, and the cluster's secret is not set"),
        (["scale", "many"], 'unable to convert "many" into int'),
        (["status", "--url", "nowhere"], "is no URL of a process"),
    ],
)
def test_wrong_usage(styx: Styx, words: list[str], complaint: str) -> None:
    ran = styx(*words)
    assert (ran.status, ran.out) == (2, "")
    assert complaint in ran.err


def test_options_from_the_environment(styx: Styx, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STYX_LOG", "file:///x")
    monkeypatch.setenv("STYX_SECRET", "0123456789abcdef")
    assert "'file:///x' is not a Kafka address" in styx("gateway").err
    monkeypatch.setenv("STYX_COORDINATOR", "nowhere")
    assert "'nowhere' is no address" in styx("gateway").err


def test_nobody_there(styx: Styx, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STYX_SECRET", "0123456789abcdef")
    ran = styx("deploy", "--rollback", "--coordinator", "127.0.0.1:1")
    assert (ran.status, ran.out) == (1, "")
    assert "127.0.0.1:1 cannot be reached" in ran.err
    ran = styx("status", "--url", "http://127.0.0.1:1")
    assert (ran.status, ran.out) == (1, "")
    assert "no coordinator answers at http://127.0.0.1:1" in ran.err


def facts(directory: Path, app: str, coordinator: str) -> RunFacts:
    return RunFacts(
        app=app,
        cluster="c",
        coordinator=coordinator,
        facts_url="http://127.0.0.1:1",
        gateway_urls=["http://127.0.0.1:2"],
        secret_file=str(directory / "secret"),
    )


def test_the_local_cluster_is_found(styx: Styx, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[str, Security, Deploy | Rollback | Scale]] = []

    async def ask(address: str, security: Security, message: Deploy | Rollback | Scale) -> Answer:
        asked.append((address, security, message))
        return Answer(len(asked) == 1, "words", 4)

    monkeypatch.setattr(operator_link, "ask", ask)
    first, second = Path(".styx/run/a"), Path(".styx/run/b")
    with held(first):
        write_secret(first, "of the first one, a")
        write_facts(first, facts(first, "a", "127.0.0.1:3"))
        assert styx("deploy", "--rollback") == (0, "words\n", "")
        assert styx("scale", "3") == (1, "", "styx: not scaled: words\n")
        assert [(address, security.secret) for address, security, _ in asked] == [
            ("127.0.0.1:3", b"of the first one, a")
        ] * 2
        assert [message for _, _, message in asked] == [Rollback(), Scale(3)]
        assert "no coordinator answers at http://127.0.0.1:1" in styx("status").err
        assert "no gateway answers at http://127.0.0.1:2" in styx("call", "x", "y", "z").err
        with held(second):
            write_facts(second, facts(second, "b", "127.0.0.1:4"))
            ran = styx("status")
            assert ran.status == 2
            assert "several clusters run here" in ran.err
            assert "b: coordinator 127.0.0.1:4" in ran.err
        with pytest.raises(CommandFailed, match="runs there already"), held(first):
            pass
    assert f"no coordinator answers at {status.URL_DEFAULT}" in styx("status").err
    assert (first / "secret").stat().st_mode & 0o777 == 0o600


def test_deploy_sends_a_signed_package(styx: Styx, monkeypatch: pytest.MonkeyPatch) -> None:
    from styx.deployment.package import read_header

    sent: list[Deploy] = []

    async def ask(_: str, __: Security, message: Deploy) -> Answer:
        sent.append(message)
        return Answer(False, "because", 3)

    monkeypatch.setattr(operator_link, "ask", ask)
    monkeypatch.setattr("styx.cli.app_target.load_app", lambda _: App("shop", []))
    monkeypatch.setenv("STYX_SECRET", "0123456789abcdef")
    ran = styx("deploy", "shop:app")
    assert (ran.status, ran.err) == (1, "styx: not deployed: because\nversion 3 goes on\n")
    assert read_header(sent[0].package, b"0123456789abcdef").description.name == "shop"


def test_drain_asks_again_while_the_coordinator_is_away(styx: Styx, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[object] = []

    async def ask(_: str, __: Security, message: object) -> Answer:
        asked.append(message)
        if len(asked) < 3:
            raise ConnectionError("it begins")
        return Answer(True, "worker 'w1' has no slots any more")

    monkeypatch.setattr(operator_link, "ask", ask)
    monkeypatch.setattr(operator_link, "RETRY_SECONDS", 0.0)
    monkeypatch.setenv("STYX_SECRET", "0123456789abcdef")
    monkeypatch.setenv("STYX_NAME", "w1")
    assert styx("drain") == (0, "worker 'w1' has no slots any more\n", "")
    assert asked == [Drain("w1")] * 3


def test_drain_gives_a_coordinator_up_that_stays_away(styx: Styx, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[object] = []

    async def ask(_: str, __: Security, message: object) -> Answer:
        asked.append(message)
        if len(asked) < 3:
            raise Unanswered("it ends")
        raise ConnectionError("nobody is there")

    monkeypatch.setattr(operator_link, "ask", ask)
    monkeypatch.setattr(operator_link, "RETRY_SECONDS", 0.0)
    monkeypatch.setattr(operator_link, "AWAY_SECONDS_MAX", 0.0)
    monkeypatch.setenv("STYX_SECRET", "0123456789abcdef")
    ran = styx("drain", "w1")
    assert (ran.status, ran.err) == (1, "styx: nobody is there\nSee: styx status\n")
    assert len(asked) == 3, "one that was there, and did not answer, is asked again"


def test_drain_fails_when_its_time_is_over_or_the_coordinator_refuses_it(
    styx: Styx, monkeypatch: pytest.MonkeyPatch
) -> None:
    error = ConnectionError("nobody is there")

    async def ask(_: str, __: Security, message: object) -> Answer:
        raise error

    monkeypatch.setattr(operator_link, "ask", ask)
    monkeypatch.setenv("STYX_SECRET", "0123456789abcdef")
    ran = styx("drain", "w1", "--timeout", "0.01")
    assert ran.status == 1
    assert "has not answered within 0.01 s" in ran.err
    assert "It was away: nobody is there." in ran.err
    error = Refused(Refusal.VERSION, "another version")
    ran = styx("drain", "w1")
    assert (ran.status, ran.err) == (1, "styx: another version\nSee: styx status\n")


@pytest.mark.parametrize(("failed", "code"), [(True, 1), (False, 2)])
def test_set_aside_says_whether_to_ask_again(
    styx: Styx, monkeypatch: pytest.MonkeyPatch, failed: bool, code: int
) -> None:
    """1 if log or store are out of reach, 2 if the request cannot be set aside."""
    asked: list[object] = []

    async def ask(_: str, __: Security, message: object) -> Answer:
        asked.append(message)
        return Answer(False, "because", failed=failed)

    monkeypatch.setattr(operator_link, "ask", ask)
    monkeypatch.setenv("STYX_SECRET", "0123456789abcdef")
    ran = styx("set-aside", "3:17", "--coordinator", "127.0.0.1:1")
    assert (ran.status, ran.out, ran.err) == (code, "", "styx: because\n")
    assert asked == [SetAside("3:17", False)]
