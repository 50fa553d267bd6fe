"""`styx keys`: keys made, shown and revoked; and commands that are given one."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from anyio.from_thread import start_blocking_portal

from styx.gateway.auth.access import AccessOptions
from styx.gateway.front import Front
from tests.cli.conftest import Styx
from tests.gateway.fake_engine import FakeEngine
from tests.gateway.running import running


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_add_list_and_revoke(styx: Styx, here: Path) -> None:
    key = styx("keys", "add", "shop").out.strip()
    assert key.startswith("styx_")
    other = styx("keys", "add", "shop", "--days", "2", "--rate", "10", "--in-flight", "5").out.strip()
    styx("keys", "add", "batch")
    assert key not in (here / "keys.json").read_text()
    first, second, third = styx("keys", "list").out.splitlines()
    assert first.split()[:2] == ["shop", key.split("_")[1]]
    assert second.split("  ")[1] == other.split("_")[1]
    assert second.endswith("10/s  5 at once")
    assert "expires 20" in second
    assert third.startswith("batch  ")
    assert styx("keys", "revoke", key.split("_")[1]).out == f"revoked shop  {key.split('_')[1]}\n"
    assert len(styx("keys", "list").out.splitlines()) == 2
    styx("keys", "revoke", "shop")
    assert styx("keys", "list").out.startswith("batch")


def test_what_goes_wrong(styx: Styx, here: Path) -> None:
    assert "cannot be read" in styx("keys", "list").err
    assert styx("keys", "add", "a b").status == 2
    assert not (here / "keys.json").exists()
    assert styx("keys", "add", "a", "--days", "0").status == 2
    assert styx("keys", "add", "a", "--rate", "0").status == 2
    styx("keys", "add", "a")
    ran = styx("keys", "revoke", "b")
    assert ran.status == 1
    assert "no key in keys.json has the id or the name b" in ran.err
    (here / "keys.json").write_text(json.dumps({"keys": 1}))
    assert "keys.json: it is no file of API keys" in styx("keys", "add", "b").err


def test_help(styx: Styx) -> None:
    for words in (["keys"], ["keys", "--help"], ["keys", "add", "--help"]):
        ran = styx(*words)
        assert ran.status == 0
        assert "keys" in ran.out
    assert "revoke 1a2b3c4d" in styx("keys", "--help").out


def test_a_call_with_a_key(styx: Styx, here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    key = styx("keys", "add", "shop").out.strip()
    front = Front(access=AccessOptions(api_keys=here / "keys.json"))
    with (
        start_blocking_portal() as portal,
        portal.wrap_async_context_manager(running(FakeEngine(), front=front)) as server,
    ):
        words = ["call", "shelf", "a", "add", "2", "3", "--url", server.url]
        refused = styx(*words)
        assert refused.status == 1
        assert "unauthenticated" in refused.err
        assert styx(*words, "--api-key", key).out == "5\n"
        monkeypatch.setenv("STYX_API_KEY", key + "\n")
        assert styx(*words).out == "5\n"
        monkeypatch.setenv("STYX_API_KEY", "a\r\nb: c")
        assert styx(*words).status == 2


def test_a_user_of_postgresql_is_made_without_the_extra_sql() -> None:
    """A line is made where the replica need not run."""
    lacks = "import sys; sys.modules['pyarrow'] = sys.modules['duckdb'] = None; from styx.cli import main; "
    command = [sys.executable, "-c", lacks + "sys.exit(main(['keys', 'postgres', 'ann']))"]
    made = subprocess.run(command, input="secret\n", capture_output=True, check=True, text=True)
    assert made.stdout.startswith("ann:SCRAM-SHA-256$")
