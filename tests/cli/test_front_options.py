"""Options of what stands before a gateway: which go together, and who is served without being asked."""

from pathlib import Path

import pytest

from styx import ConfigurationError
from styx.cli.application import application
from styx.cli.front_options import FrontOptions, front_of, only_here
from tests.cli.conftest import Styx

EVERYTHING = FrontOptions(
    allow_host=("a.example.com", "*.b"),
    allow_origin=("https://a.example.com",),
    trust_proxy=("10.0.0.7", "10.1.0.0/16"),
    anonymous=True,
    api_keys=Path("keys.json"),
    jwt_keys="https://login.example.com/jwks",
    jwt_issuer="https://login.example.com",
    jwt_audience=("a", "b"),
    jwt_algorithm=("ES256",),
    policy=Path("rules.toml"),
    rate_limit=2.5,
    in_flight_limit=3,
    tls_cert=Path("a.crt"),
    tls_key=Path("a.key"),
)


def test_words_are_the_same_options() -> None:
    words = ["gateway", "--log", "kafka://127.0.0.1:1", *EVERYTHING.words()]
    _, bound, _ = application().parse_args(words, exit_on_error=False, print_error=False)
    assert bound.arguments["front"] == EVERYTHING


def test_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STYX_ALLOW_HOST", "a.example.com *.b")
    monkeypatch.setenv("STYX_ALLOW_ORIGIN", "https://a https://b:1")
    monkeypatch.setenv("STYX_ANONYMOUS", "true")
    monkeypatch.setenv("STYX_JWT_AUDIENCE", "a b")
    words = ["gateway", "--log", "kafka://127.0.0.1:1"]
    _, bound, _ = application().parse_args(words, exit_on_error=False, print_error=False)
    wanted = FrontOptions(
        allow_host=("a.example.com", "*.b"),
        allow_origin=("https://a", "https://b:1"),
        anonymous=True,
        jwt_audience=("a", "b"),
    )
    assert bound.arguments["front"] == wanted


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "", "10.0.0.1", "no-such-host.invalid"])
def test_whoever_reaches_it_is_served_only_if_that_is_said(host: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"clients would not be authenticated.\nMake API keys") as caught:
        front_of(FrontOptions(), host)
    for option in ("styx keys add", "--api-keys", "--jwt-keys", "--anonymous"):
        assert option in str(caught.value)
    front_of(FrontOptions(anonymous=True), host)
    keys = tmp_path / "keys.json"
    keys.write_text('{"keys": []}')
    front_of(FrontOptions(api_keys=keys), host)


@pytest.mark.parametrize("host", ["127.0.0.1", "::1", "localhost", "127.1.2.3"])
def test_this_machine_is_served(host: str) -> None:
    assert only_here(host)
    front_of(FrontOptions(), host)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (FrontOptions(anonymous=True, api_keys=Path("x")), "leave one out"),
        (FrontOptions(tls_cert=Path("x")), "belong together"),
        (FrontOptions(tls_key=Path("x")), "belong together"),
        (FrontOptions(tls_cert=Path("x"), tls_key=Path("x")), "not a PEM certificate"),
        (FrontOptions(api_keys=Path("x")), "cannot be read"),
        (FrontOptions(jwt_keys="x"), "--jwt-issuer"),
        (FrontOptions(policy=Path("x")), "--api-keys"),
        (FrontOptions(allow_host=("http://a",)), "no host to allow"),
        (FrontOptions(allow_origin=("*",)), "no origin to allow"),
        (FrontOptions(trust_proxy=("proxy.example.com",)), "no proxy to trust"),
    ],
)
def test_what_is_wrong_is_said_before_anything_starts(options: FrontOptions, words: str) -> None:
    with pytest.raises(ConfigurationError, match=words):
        front_of(options, "127.0.0.1")


@pytest.mark.parametrize("command", ["dev", "gateway", "up"])
def test_each_command_refuses(styx: Styx, command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STYX_SECRET", "x" * 32)
    monkeypatch.chdir(tmp_path)
    data = ["--log", "kafka://127.0.0.1:1", "--store", f"file://{tmp_path}/store"]
    words = {
        "dev": ["dev", "examples.bank:app"],
        "gateway": ["gateway", *data[:2]],
        "up": ["up", "examples.bank:app", *data],
    }[command]
    ran = styx(*words, "--host", "0.0.0.0")
    assert ran.status == 2
    assert "--anonymous" in ran.err
