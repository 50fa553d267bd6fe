"""Which form of the engine is imported: extensions only if they are of these sources and of this interpreter."""

from __future__ import annotations

import asyncio
import gc
import json
import os
import subprocess
import sys
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path
from typing import Any

import pytest

from styx import App, Context, Operator, TransactionAborted
from styx.native.form import DIRECTORY, MANIFEST, PLAIN_VARIABLE, Form, digest, form_of, loaded, source_of
from styx.testing import embedded_cluster
from tests.compile_scripts import script

forgetful = Operator("forgetful")


@forgetful.register
async def put(ctx: Context) -> None:
    await ctx.put(ctx.get())


@forgetful.register
async def add(ctx: Context) -> Any:
    return ctx.get(0) + 1  # type: ignore[operator]


@forgetful.register
async def give(ctx: Context) -> Any:
    return ctx.call("forgetful", "add", "b")


@forgetful.register
async def ask(ctx: Context) -> Any:
    return ctx.call_external(len, "")


MODULE = "styx.worker.slot"
IMPORTED = "styx.model.limits"
SHARED = "shared__mypyc"


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """A package with one compiled module, which imports another."""
    for module in (MODULE, IMPORTED):
        source = source_of(module, tmp_path)
        source.parent.mkdir(exist_ok=True)
        source.write_text("one = 1\n")
    made = tmp_path / "_compiled"
    made.mkdir()
    for name in (MODULE, SHARED):
        (made / (name + EXTENSION_SUFFIXES[0])).write_bytes(b"library")
    manifest = {
        "sources": {module: digest(source_of(module, tmp_path).read_bytes()) for module in (MODULE, IMPORTED)},
        "extensions": {MODULE: 7, SHARED: 7},
    }
    (made / MANIFEST).write_text(json.dumps(manifest))
    return tmp_path


def form(package: Path, plain: str = "") -> Form:
    return form_of(package / "_compiled", package, plain)


def test_extensions_of_the_sources_beside_them_are_taken(package: Path) -> None:
    found = form(package)
    assert found.reason == ""
    assert set(found.extensions) == {MODULE, SHARED}
    assert form(package, plain="0") == found


def test_a_source_that_has_changed_runs_as_it_is_now(package: Path) -> None:
    source_of(MODULE, package).write_text("one = 2\n")
    assert form(package) == Form({}, "slot.py has changed since it was compiled: run scripts/compile again")


def test_what_a_compiled_source_imports_has_its_constants_in_the_code(package: Path) -> None:
    source_of(IMPORTED, package).write_text("one = 2\n")
    assert form(package) == Form({}, "limits.py has changed since it was compiled: run scripts/compile again")


def test_a_source_that_is_gone_is_not_what_was_compiled(package: Path) -> None:
    source_of(MODULE, package).unlink()
    assert form(package).reason.startswith("slot.py has changed")


def test_another_interpreter_s_extensions_are_left_alone(package: Path) -> None:
    path = form(package).extensions[MODULE]
    path.rename(path.with_name(f"{MODULE}.cpython-37.so"))
    assert form(package) == Form({}, "another interpreter's modules are compiled: run scripts/compile again")


def test_half_an_extension_is_not_loaded(package: Path) -> None:
    path = form(package).extensions[SHARED]
    path.write_bytes(b"lib")
    assert form(package) == Form({}, f"{path.name} is damaged: run scripts/compile again")


def test_a_library_that_cannot_be_loaded_here_leaves_the_plain_form(package: Path) -> None:
    finders = list(sys.meta_path)
    reason = loaded(form(package)).reason
    assert reason.startswith("what is compiled cannot be loaded, ")
    assert sys.meta_path == finders


def test_the_plain_form_can_be_chosen(package: Path) -> None:
    assert form(package, plain="1") == Form({}, f"{PLAIN_VARIABLE} is set")


@pytest.mark.parametrize(
    "damaged",
    [
        "",
        "{",
        "[]",
        "[" * 100_000,
        '{"sources": 1, "extensions": {}}',
        '{"sources": {}}',
        '{"sources": {}, "extensions": {}}',
        '{"sources": {}, "extensions": ["one"]}',
    ],
)
def test_a_damaged_manifest_is_no_manifest(package: Path, damaged: str) -> None:
    (package / "_compiled" / MANIFEST).write_text(damaged)
    assert "is damaged: run scripts/compile again" in form(package).reason


def test_nothing_compiled(tmp_path: Path) -> None:
    assert form(tmp_path) == Form({}, "nothing is compiled: run scripts/compile")


@pytest.mark.parametrize("plain", ["", "1"])
def test_what_is_imported_is_what_was_found(plain: str) -> None:
    script = "import styx.worker.slot as slot, styx.native.form as f; print(slot.__file__, *f.FORM.extensions)"
    environment = {**os.environ, PLAIN_VARIABLE: plain}
    printed = subprocess.run(
        [sys.executable, "-c", script], env=environment, check=True, capture_output=True, text=True
    )
    file, *extensions = printed.stdout.split()
    assert file.startswith(str(DIRECTORY)) == (MODULE in extensions)
    assert plain == "" or not extensions


def test_nothing_is_imported_before_the_form_is_found() -> None:
    # A module that was imported earlier has two sets of classes: its own, and those that compiled code knows.
    script = (
        "import importlib, styx, styx.native.form as f\n"
        "for name in f.FORM.extensions:\n"
        "    print(not importlib.import_module(name).__file__.endswith('.py'), name)"
    )
    printed = subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, text=True).stdout
    assert "False" not in printed


def test_a_method_of_a_context_called_without_one() -> None:
    # In a process of its own, which this ended.
    script = "import styx\ntry:\n    styx.Context.get()\nexcept TypeError as e:\n    print(e)"
    printed = subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, text=True).stdout
    assert "argument" in printed


def test_what_code_is_made_of(tmp_path: Path) -> None:
    dependencies = script("dependencies").dependencies
    files = {
        "styx/a.py": "from styx.b import ONE\nfrom styx.package import c\nimport json\nfrom os import path\n",
        "styx/b.py": "from __future__ import annotations\nif TYPE_CHECKING:\n    import styx.d\n",
        "styx/package/__init__.py": "",
        "styx/package/c.py": "def f():\n    from styx.a import TWO\n",
        "styx/d.py": "",
        "styx/e.py": "",
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    found = dependencies(["styx.a"], tmp_path)
    assert sorted(found) == ["styx.a", "styx.b", "styx.d", "styx.package.__init__", "styx.package.c"]
    assert found["styx.b"] == tmp_path / "styx/b.py"


@pytest.mark.parametrize(
    ("mistake", "told"),
    [
        ("put", r"<coroutine object Context\.get> of type coroutine cannot be stored"),
        ("add", r"unsupported operand type\(s\) for \+: 'coroutine' and 'int'"),
        ("give", r"forgetful\.give on 'a' made a call to forgetful\.add and did not await it"),
        ("ask", r"forgetful\.ask on 'a' made an outside call to builtins\.len and did not await it"),
    ],
)
@pytest.mark.filterwarnings("ignore:coroutine .* was never awaited:RuntimeWarning")
def test_a_forgotten_await_reads_the_same_in_both_forms(mistake: str, told: str) -> None:
    async def make() -> None:
        async with embedded_cluster(App("forgetful", [forgetful])) as cluster:
            with pytest.raises(TransactionAborted, match=told):
                await cluster.call("forgetful", "a", mistake)

    asyncio.run(make())
    gc.collect()  # what was not awaited, while its warning is expected
