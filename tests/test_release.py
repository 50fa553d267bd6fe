"""What a release is made of: one version everywhere, an sdist that has what it needs, a wheel in its compiled form."""

from __future__ import annotations

import os
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest
import yaml

from styx import __version__
from styx.native.form import FORM

ROOT = Path(__file__).parents[1]
REPORT = "from styx import __version__; from styx.native.form import FORM, describe; print(__version__, describe(FORM))"


def _build(kind: str, into: Path, **environment: str) -> Path:
    command = [sys.executable, "-m", "hatchling", "build", "--target", kind, "--directory", str(into)]
    subprocess.run(command, cwd=ROOT, env={**os.environ, **environment}, capture_output=True, check=True)
    (built,) = into.iterdir()
    return built


def test_one_version_stands_everywhere() -> None:
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text("utf-8"))
    charts = [yaml.safe_load((ROOT / f"helm/{name}/Chart.yaml").read_text("utf-8")) for name in ("styx", "stack")]
    assert citation["version"] == __version__
    assert [chart["appVersion"] for chart in charts] == [__version__, __version__]


def test_the_paper_that_is_cited_is_the_one_that_the_documents_name() -> None:
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text("utf-8"))
    (paper,) = citation["references"]
    for document in ("README.md", "docs/architecture.md"):
        assert paper["doi"] in (ROOT / document).read_text("utf-8")


@pytest.mark.slow
def test_an_sdist_has_what_builds_tests_and_describes_it(tmp_path: Path) -> None:
    with tarfile.open(_build("sdist", tmp_path)) as archive:
        files = {name.partition("/")[2] for name in archive.getnames()}
    for wanted in ("scripts/compile.d/wheel.py", "scripts/compile.d/build.py", "tests/test_release.py", "CITATION.cff"):
        assert wanted in files
    assert {"SECURITY.md", "MAINTAINERS.md", "CHANGELOG.md", "LICENSE", "docs/programming.md"} <= files
    assert not [name for name in files if "styx/_compiled" in name or "__pycache__" in name]


@pytest.mark.slow
def test_a_wheel_is_of_source_for_any_interpreter_unless_it_is_told_to_compile(tmp_path: Path) -> None:
    wheel = _build("wheel", tmp_path, STYX_COMPILE="0")
    assert wheel.name == f"styx_dataflow-{__version__}-py3-none-any.whl"
    names = zipfile.ZipFile(wheel).namelist()
    assert not [name for name in names if "styx/_compiled" in name]
    assert {name.partition("/")[0] for name in names} == {"styx", f"styx_dataflow-{__version__}.dist-info"}
    in_wheel = {name for name in names if name.startswith("styx/")}
    in_repository = {str(path.relative_to(ROOT)) for path in (ROOT / "styx").rglob("*.py")}
    assert {name for name in in_wheel if name.endswith(".py")} == in_repository


@pytest.mark.slow
@pytest.mark.skipif(not FORM.extensions, reason="this checkout is not compiled, and compiling takes minutes")
def test_a_compiled_wheel_says_so_where_it_is_installed(tmp_path: Path) -> None:
    wheel = _build("wheel", tmp_path / "built", STYX_COMPILE="1")
    assert "none-any" not in wheel.name, "it is for one interpreter and one platform"
    zipfile.ZipFile(wheel).extractall(tmp_path / "installed")
    environment = {**os.environ, "PYTHONPATH": str(tmp_path / "installed"), "STYX_PLAIN": "0"}
    said = subprocess.run(
        [sys.executable, "-c", REPORT], cwd=tmp_path, env=environment, capture_output=True, text=True, check=True
    )
    assert said.stdout == f"{__version__} compiled\n", "run scripts/compile if a source has changed since"
