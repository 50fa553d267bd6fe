"""The command line as a whole: help, errors, exit codes, and what it imports before it knows what to do."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from styx import ConfigurationError, EngineFailed, __version__
from styx.cli import application, version_text
from styx.cli import new as new_command
from tests.cli.conftest import Styx

HEAVY = {"asyncio", "aiohttp", "starlette", "uvicorn", "uvloop", "sqlite3", "ssl", "http.client", "prometheus_client"}
HEAVY_PARTS = {"styx.gateway", "styx.client", "styx.embedded_engine", "styx.worker", "styx.coordinator", "styx.log"}
IMPORTED = "import sys; from styx.cli import main; main(sys.argv[1:]); print(*sys.modules, file=sys.stderr)"


@pytest.mark.parametrize("words", [["--help"], ["dev", "--help"], ["new", "x y"], ["dve"]])
def test_start_up_imports_nothing_heavy(words: list[str]) -> None:
    ran = subprocess.run([sys.executable, "-c", IMPORTED, *words], capture_output=True, text=True, check=True)
    modules = set(ran.stderr.splitlines()[-1].split())
    assert "styx.cli.application" in modules
    assert not modules & (HEAVY | HEAVY_PARTS)


def test_package_alone_imports_no_command_line() -> None:
    code = "import sys, styx.cli; print(*sys.modules)"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not {"cyclopts", "rich", "styx.cli.application"} & set(ran.stdout.split())


FIRST_PROCESS = """
import os, signal, sys
os.getpid = lambda: int(sys.argv[1])
from styx.cli import application
application.run(["--version"])
signal.raise_signal(signal.SIGTERM)
"""


@pytest.mark.parametrize(("pid", "code"), [(1, 143), (2, -15)])
def test_sigterm_ends_a_container_s_first_process_too(pid: int, code: int) -> None:
    """To the kernel this one is any other, so that what is seen of it is the handler and its absence."""
    ran = subprocess.run([sys.executable, "-c", FIRST_PROCESS, str(pid)], capture_output=True, check=False)
    assert ran.returncode == code


@pytest.mark.parametrize("command", [["-m", "styx"], [str(Path(sys.executable).with_name("styx"))]])
def test_module_and_script(command: list[str]) -> None:
    words = [sys.executable, *command] if command[0] == "-m" else command
    ran = subprocess.run([*words, "--version"], capture_output=True, text=True, check=True)
    assert ran.stdout == f"{version_text()}\n"
    assert ran.stdout.startswith(f"{__version__} (")
    assert subprocess.run([*words, "nothing"], capture_output=True, check=False).returncode == 2


def test_missing_extra(styx: Styx, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "styx.cli.application")
    monkeypatch.setitem(sys.modules, "cyclopts", None)
    install = "pip install 'styx-dataflow[all]', or pip install '.[all]' in a clone"
    assert styx("--help") == (1, "", f"styx: the command line lacks cyclopts: {install}\n")
    assert styx("--version") == (0, f"{version_text()}\n", ""), "a bare installation can be asked what it is"


def test_help_names_the_commands_and_what_to_do_first(styx: Styx) -> None:
    for ran in (styx(), styx("--help"), styx("-h")):
        assert ran.status == 0
        for text in ("styx demo", "demo ", "new ", "dev ", "call ", "Exit codes", "STYX_DEBUG"):
            assert text in ran.out


@pytest.mark.parametrize(
    ("command", "texts"),
    [
        ("demo", ["STYX_SECONDS", "STYX_ACCOUNTS", "STYX_CRASHES", "STYX_SEED", "STYX_DATA_DIR", "SIGKILL"]),
        ("new", ["NAME", "styx new shop"]),
        ("dev", ["STYX_APP", "STYX_HOST", "STYX_PORT", "STYX_DATA_DIR", "STYX_SNAPSHOT_INTERVAL", "bank.py:app"]),
        ("call", ["STYX_URL", "STYX_TIMEOUT", "STYX_IDEMPOTENCY_KEY", "transfer bob 30", "aborted: Type: message"]),
    ],
)
def test_help_of_a_command_needs_no_manual(styx: Styx, command: str, texts: list[str]) -> None:
    ran = styx(command, "--help")
    assert ran.status == 0
    for text in [*texts, "Examples:", "Exit codes:"]:
        assert text in ran.out
    for line in ran.out.splitlines():
        assert not line.endswith(" "), "help was wrapped where its author did not break it"


@pytest.mark.parametrize("name", application._COMMANDS)
def test_the_help_of_each_command_has_examples_and_exit_codes(styx: Styx, name: str) -> None:
    """Also of a new one."""
    words = name.replace("_", "-")
    module = application._COMMANDS[name]
    assert (module.__doc__ or "").startswith(f"`styx {words}`: ")
    ran = styx(words, "--help")
    assert ran.status == 0
    for text in (f"Usage: styx {words}", "Examples:", f"styx {words}", "Exit codes:"):
        assert text in ran.out
    for line in ran.out.splitlines():
        assert not line.endswith(" "), "help was wrapped where its author did not break it"


@pytest.mark.parametrize("name", application._COMMANDS)
def test_the_help_of_a_command_names_a_store_s_secrets_if_it_has_a_store(styx: Styx, name: str) -> None:
    ran = styx(name.replace("_", "-"), "--help")
    assert ("STYX_S3_SECRET_KEY" in ran.out) == ("--store" in ran.out)


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (["dve"], 'Did you mean "dev"?'),
        (["dev"], "MODULE:APP"),
        (["dev", "x:app", "--prot", "1"], "Did you mean --port?"),
        (["dev", "x:app", "--port", "high"], 'unable to convert "high" into int'),
        (["dev", "x:app", "--port", "70000"], "from 0 to 65535"),
        (["dev", "x:app", "--snapshot-interval", "0"], "above 0"),
        (["dev", "x:app", "--snapshot-interval", "nan"], "above 0"),
        (["call", "account", "alice"], "FUNCTION"),
        (["call", "a", "b", "c", "--timeout", "0"], "--timeout"),
        (["demo", "--seconds", "0"], "--seconds"),
        (["demo", "--accounts", "1"], "--accounts"),
        (["demo", "--crashes", "0"], "--crashes"),
        (["demo", "--data-dir", "/"], "not empty"),
    ],
)
def test_wrong_usage(styx: Styx, words: list[str], complaint: str) -> None:
    ran = styx(*words)
    assert (ran.status, ran.out) == (2, "")
    assert complaint in ran.err
    assert ran.err.startswith("styx: ")
    assert len(ran.err.splitlines()) <= 2


def test_options_from_the_environment(styx: Styx, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STYX_PORT", "70000")
    assert "got 70000" in styx("dev", "x:app").err
    assert "got -1" in styx("dev", "x:app", "--port", "-1").err
    monkeypatch.setenv("STYX_PORT", "high")
    assert "STYX_PORT" in styx("dev", "x:app").err


@pytest.mark.parametrize(
    ("error", "status", "complaint"),
    [
        (ConfigurationError("declare it otherwise"), 2, "styx: declare it otherwise\n"),
        (EngineFailed("the disk is full"), 1, "styx: the disk is full\n"),
        (PermissionError(13, "Permission denied", "/x"), 1, "styx: [Errno 13] Permission denied: '/x'\n"),
        (KeyboardInterrupt(), 130, "styx: interrupted\n"),
        (
            ModuleNotFoundError("x", name="uvicorn"),
            1,
            "styx: this command lacks uvicorn: pip install 'styx-dataflow[all]'",
        ),
        (ModuleNotFoundError("x", name="styx.x"), 1, "styx: this is a fault of styx itself: ModuleNotFoundError: x\n"),
        (RuntimeError("odd"), 1, "styx: this is a fault of styx itself: RuntimeError: odd\n"),
    ],
)
def test_errors_become_words(
    styx: Styx, monkeypatch: pytest.MonkeyPatch, error: BaseException, status: int, complaint: str
) -> None:
    def new(name: str, /) -> None:
        raise error

    monkeypatch.setitem(application._COMMANDS, "new", new_command)
    monkeypatch.setattr(new_command, "new", new)
    ran = styx("new", "x")
    assert ran.status == status
    assert ran.err.startswith(complaint)
    assert "Traceback" not in ran.err
    monkeypatch.setenv("STYX_DEBUG", "1")
    assert "Traceback" in styx("new", "x").err


@pytest.mark.parametrize("words", [["--help"], ["new", "shop"]])
def test_reader_that_went_away(tmp_path: Path, words: list[str]) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    try:
        command = [sys.executable, "-m", "styx", *words]
        buffered = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
        ran = subprocess.run(command, stdout=writer, stderr=subprocess.PIPE, cwd=tmp_path, check=False, env=buffered)
    finally:
        os.close(writer)
    assert (ran.returncode, ran.stderr) == (1, b"")
