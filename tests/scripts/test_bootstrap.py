"""`scripts/bootstrap` with a pretended Python: what it installs for which purpose, and when it does nothing."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PYTHON = """#!/bin/sh
# Makes environments of itself, says what pip would, and notes what was installed.
case "$1 $2" in
"-m venv") mkdir -p .venv/bin && cp "$0" .venv/bin/python ;;
"-m pip")
    echo "$*" >>installed
    [ ! -e refused ] || { echo "ERROR: no such package" >&2; exit 1; }
    echo "Collecting msgspec==0.20.0 (from -r requirements.lock)"
    echo "Installing collected packages: msgspec"
    ;;
"-c "*) echo 3.11.7 ;;
"--version "*) echo Python 3.11.7 ;;
esac
"""


class Clone:
    """A clone that has only what bootstrap reads, and a Python that installs nothing."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        (directory / "scripts").mkdir()
        shutil.copy(ROOT / "scripts" / "bootstrap", directory / "scripts")
        for name in ("requirements.lock", "requirements-run.lock", "pyproject.toml"):
            (directory / name).write_text(f"# {name}\nmsgspec==0.20.0 \\\n")
        compile_script = directory / "scripts" / "compile"
        compile_script.write_text("#!/bin/sh\necho compiled >>installed\n")
        self.python = directory / "pretended-python"
        self.python.write_text(PYTHON)
        for program in (compile_script, self.python):
            program.chmod(0o755)

    def run(self, *words: str) -> subprocess.CompletedProcess[str]:
        command = [str(self.directory / "scripts" / "bootstrap"), *words]
        environment = {"PATH": "/usr/bin:/bin", "PYTHON": str(self.python)}
        return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)

    def installed(self) -> list[str]:
        """The locks that were installed since it was last asked, and whether anything was compiled."""
        noted = self.directory / "installed"
        lines = noted.read_text().splitlines() if noted.exists() else []
        noted.unlink(missing_ok=True)
        return [line.split()[-1] for line in lines if not line.endswith("--editable .")]


@pytest.fixture
def clone(tmp_path: Path) -> Clone:
    return Clone(tmp_path)


def test_what_runs_a_clone_is_less_than_what_tests_it(clone: Clone) -> None:
    done = clone.run("run")
    assert done.returncode == 0, done.stderr
    assert "unpacking 1 packages" in done.stderr
    assert clone.installed() == ["requirements-run.lock"]
    assert clone.run().returncode == 0
    assert clone.installed() == ["requirements.lock", "compiled"]


def test_what_is_up_to_date_is_left_alone(clone: Clone) -> None:
    for words in (["run"], []):
        clone.run(*words)
        clone.installed()
        assert clone.run(*words).returncode == 0
        assert clone.installed() == []
    clone.run("run")
    assert clone.installed() == [], "everything has what runs as well"


def test_a_changed_lock_is_installed_for_the_purpose_that_was_there(clone: Clone) -> None:
    clone.run()
    clone.installed()
    (clone.directory / "requirements.lock").write_text("msgspec==0.21.0 \\\n")
    assert clone.run("run").returncode == 0
    assert clone.installed() == ["requirements.lock", "compiled"]


def test_a_failed_installation_is_no_success_and_is_tried_again(clone: Clone) -> None:
    (clone.directory / "refused").touch()
    done = clone.run("run")
    assert done.returncode == 1
    assert "no such package" in done.stderr
    assert "could not install" in done.stderr
    clone.installed()
    (clone.directory / "refused").unlink()
    assert clone.run("run").returncode == 0
    assert clone.installed() == ["requirements-run.lock"]


def test_an_unknown_purpose_is_told(clone: Clone) -> None:
    done = clone.run("demo")
    assert done.returncode == 2
    assert 'cannot install for "demo"' in done.stderr
    assert clone.installed() == []
