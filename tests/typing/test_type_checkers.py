"""What mypy and pyright say of apps: every planted mistake is found on its line, and nothing else."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

HERE = Path(__file__).parent
TYPED, UNTYPED = HERE / "typed_bank.py", HERE / "untyped_bank.py"


def mistakes(path: Path) -> set[int]:
    return {number for number, line in enumerate(path.read_text().splitlines(), 1) if line.endswith("# wrong")}


def by_mypy(path: Path, directory: Path) -> dict[int, str]:
    (directory / "mypy.ini").write_text(f"[mypy]\nstrict = true\nmypy_path = {HERE.parents[1]}\n")
    command = [
        sys.executable,
        "-m",
        "mypy",
        "--config-file",
        str(directory / "mypy.ini"),
        "--cache-dir",
        str(directory),
    ]
    done = subprocess.run([*command, str(path)], cwd=HERE.parents[1], capture_output=True, text=True, check=False)
    found = re.findall(rf"{path.name}:(\d+): error: (.*)", done.stdout)
    assert found or "Success" in done.stdout, done.stdout + done.stderr
    return {int(line): text for line, text in found}


def by_pyright(path: Path, directory: Path) -> dict[int, str]:
    settings = {
        "include": [str(path)],
        "extraPaths": [str(HERE.parents[1])],
        "typeCheckingMode": "standard",
        "pythonVersion": "3.11",
    }
    (directory / "pyrightconfig.json").write_bytes(msgspec.json.encode(settings))
    command = [
        sys.executable,
        "-m",
        "basedpyright",
        "--outputjson",
        "--pythonpath",
        sys.executable,
        "-p",
        str(directory),
    ]
    done = subprocess.run(command, capture_output=True, check=False, cwd=directory)
    report = msgspec.json.decode(done.stdout)
    return {
        each["range"]["start"]["line"] + 1: each["message"]
        for each in report["generalDiagnostics"]
        if each["severity"] == "error"
    }


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """For all tests: with the cache of the first one mypy needs not check all of styx again."""
    return tmp_path_factory.mktemp("checkers")


@pytest.mark.slow
@pytest.mark.parametrize("checker", [by_mypy, by_pyright])
def test_every_planted_mistake_is_found_and_nothing_else(checker: object, directory: Path) -> None:
    assert callable(checker)
    found = checker(TYPED, directory)
    assert set(found) == mistakes(TYPED), found


@pytest.mark.slow
@pytest.mark.parametrize("checker", [by_mypy, by_pyright])
def test_an_app_without_types_is_as_right_as_ever(checker: object, directory: Path) -> None:
    assert callable(checker)
    assert checker(UNTYPED, directory) == {}
