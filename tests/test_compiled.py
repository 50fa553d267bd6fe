"""Which form of the engine is imported: extensions only if they are of these sources and of this interpreter."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path

import pytest

from styx.compiled import DIRECTORY, MANIFEST, PLAIN_VARIABLE, Form, digest, form_of, source_of

MODULE = "styx.worker.slot"


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """A package with one compiled module."""
    source = source_of(MODULE, tmp_path)
    source.parent.mkdir()
    source.write_text("one = 1\n")
    made = tmp_path / "_compiled"
    made.mkdir()
    for name in (MODULE, "shared__mypyc"):
        (made / (name + EXTENSION_SUFFIXES[0])).touch()
    manifest = {"sources": {MODULE: digest(source.read_bytes())}, "shared": ["shared__mypyc"]}
    (made / MANIFEST).write_text(json.dumps(manifest))
    return tmp_path


def form(package: Path, plain: str = "") -> Form:
    return form_of(package / "_compiled", package, plain)


def test_extensions_of_the_sources_beside_them_are_taken(package: Path) -> None:
    found = form(package)
    assert found.reason == ""
    assert set(found.extensions) == {MODULE, "shared__mypyc"}
    assert form(package, plain="0") == found


def test_a_source_that_has_changed_runs_as_it_is_now(package: Path) -> None:
    source_of(MODULE, package).write_text("one = 2\n")
    assert form(package) == Form({}, "slot.py has changed since it was compiled: run scripts/compile again")


def test_a_source_that_is_gone_is_not_what_was_compiled(package: Path) -> None:
    source_of(MODULE, package).unlink()
    assert form(package).reason.startswith("slot.py has changed")


def test_another_interpreter_s_extensions_are_left_alone(package: Path) -> None:
    path = form(package).extensions[MODULE]
    path.rename(path.with_name(f"{MODULE}.cpython-37.so"))
    assert form(package) == Form({}, "another interpreter's modules are compiled: run scripts/compile again")


def test_the_plain_form_can_be_chosen(package: Path) -> None:
    assert form(package, plain="1") == Form({}, f"{PLAIN_VARIABLE} is set")


@pytest.mark.parametrize("damaged", ["", "{", "[]", '{"sources": 1, "shared": []}', '{"sources": {}}'])
def test_a_damaged_manifest_is_no_manifest(package: Path, damaged: str) -> None:
    (package / "_compiled" / MANIFEST).write_text(damaged)
    assert "is damaged: run scripts/compile again" in form(package).reason


def test_nothing_compiled(tmp_path: Path) -> None:
    assert form(tmp_path) == Form({}, "nothing is compiled: run scripts/compile")


@pytest.mark.parametrize("plain", ["", "1"])
def test_what_is_imported_is_what_was_found(plain: str) -> None:
    script = "import styx.compiled, styx.worker.slot; print(styx.worker.slot.__file__, *styx.compiled.FORM.extensions)"
    environment = {**os.environ, PLAIN_VARIABLE: plain}
    printed = subprocess.run(
        [sys.executable, "-c", script], env=environment, check=True, capture_output=True, text=True
    )
    file, *extensions = printed.stdout.split()
    assert file.startswith(str(DIRECTORY)) == (MODULE in extensions)
    assert plain == "" or not extensions
