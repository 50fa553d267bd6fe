"""`styx new`: what it writes, what it refuses, and that the project works as it is."""

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from styx.cli.new import FILES
from tests.cli.conftest import Styx


@pytest.fixture(autouse=True)
def directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_files(styx: Styx, directory: Path) -> None:
    ran = styx("new", "corner-shop")
    assert (ran.status, ran.err) == (0, "")
    assert f"cd corner-shop && {sys.executable} -m styx dev corner_shop:app" in ran.out  # as this one was started
    project = directory / "corner-shop"
    written = {str(path.relative_to(project)) for path in project.rglob("*") if path.is_file()}
    assert written == {"corner_shop.py", "tests/test_corner_shop.py", "README.md", "pyproject.toml", ".gitignore"}
    assert len(written) == len(FILES)
    for path in written:
        assert "$" not in (project / path).read_text()
    assert tomllib.loads((project / "pyproject.toml").read_text())["project"]["name"] == "corner-shop"


def test_path(styx: Styx, directory: Path) -> None:
    assert styx("new", "deep/er/shop").status == 0
    assert (directory / "deep/er/shop/shop.py").is_file()


@pytest.mark.parametrize(
    "name", ["1shop", "-", "a b", "shop!", "über", ".", "..", "json", "styx", "styx-dataflow", "class", "Test"]
)
def test_bad_name(styx: Styx, directory: Path, name: str) -> None:
    ran = styx("new", "--", name)
    assert ran.status == 2
    assert list(directory.iterdir()) == []


def test_existing_directory_is_not_touched(styx: Styx, directory: Path) -> None:
    (directory / "shop").mkdir()
    ran = styx("new", "shop")
    assert (ran.status, ran.err) == (2, "styx: shop exists already; choose another name, or remove it first\n")
    assert list((directory / "shop").iterdir()) == []


def test_place_that_is_none(styx: Styx, directory: Path) -> None:
    (directory / "file").touch()
    ran = styx("new", "file/shop")
    assert ran.status == 1
    assert "cannot write file/shop: Not a directory" in ran.err


def test_all_or_nothing(styx: Styx, directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(FILES, "pyproject.toml.template", "missing/directory/pyproject.toml")
    assert styx("new", "shop").status == 1
    assert list(directory.iterdir()) == []


@pytest.mark.slow
def test_the_project_passes_its_test(styx: Styx, directory: Path) -> None:
    styx("new", "corner-shop")
    ran = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-W", "error"],
        cwd=directory / "corner-shop",
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert " passed" in ran.stdout


def test_the_project_is_tidy(styx: Styx, directory: Path) -> None:
    styx("new", "corner-shop")
    command = [
        sys.executable,
        "-m",
        "ruff",
        "check",
        "--isolated",
        "--line-length",
        "120",
        "--select",
        "E,F,I,UP,B",
        ".",
    ]
    ran = subprocess.run(command, cwd=directory / "corner-shop", capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stdout
