"""Compiles the engine's hot modules with mypyc into `styx/_compiled`; `--remove` undoes it.

Builds elsewhere and brings the extensions in, all at once, when they are there; two of these take turns. See "Compiled"
in docs/performance.md.
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import subprocess
import sys
import tempfile
from importlib.machinery import EXTENSION_SUFFIXES
from importlib.metadata import version
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(Path(__file__).parent))
from dependencies import dependencies  # type: ignore[import-not-found]  # noqa: E402
from native_form import native_form  # type: ignore[import-not-found]  # noqa: E402

# Not as the package's module, which would import what is to be built.
_spec = spec_from_file_location("form", ROOT / "styx" / "native" / "form.py")
assert _spec is not None
assert _spec.loader is not None
compiled = module_from_spec(_spec)
_spec.loader.exec_module(compiled)

MODULES: Final = (
    "cluster/worker/reply_log",
    "kafka/appends",
    "model/cell",
    "model/context",
    "model/emitting",
    "model/event_delivery",
    "model/event_form",
    "model/event_record",
    "model/event_write",
    "model/execution",
    "model/function_spec",
    "model/giving",
    "model/group_rows",
    "model/key_text",
    "model/lane",
    "model/partitioning",
    "model/row_statements",
    "model/row_store",
    "model/rows",
    "model/sequence",
    "model/serial_id",
    "model/serial_place",
    "model/table_names",
    "model/unique_id",
    "native/compiled",
    "relational/columns",
    "relational/increment",
    "relational/index_range",
    "relational/partition_index",
    "relational/query",
    "relational/reference",
    "relational/row_indexes",
    "relational/row_keys",
    "relational/row_type",
    "relational/table",
    "relational/view",
    "sequencer/sequencer",
    "state/emissions",
    "state/entity_keys",
    "state/slot_state",
    "state/sorted_groups",
    "state/sorted_index",
    "state/table",
    "state/versions",
    "values/codec",
    "values/reading",
    "values/sets_within",
    "worker/ack_share",
    "worker/admission",
    "worker/call_graph",
    "worker/calls_together",
    "worker/chains",
    "worker/changed_entries",
    "worker/current_cell",
    "worker/cuts",
    "worker/emissions",
    "worker/endings",
    "worker/epoch",
    "worker/epoch_view",
    "worker/executor",
    "worker/external_calls",
    "worker/footprint",
    "worker/generation",
    "worker/increment_validation",
    "worker/incremented_row",
    "worker/intake",
    "worker/invocation",
    "worker/local_cells",
    "worker/local_phase",
    "worker/local_run",
    "worker/lock_phase",
    "worker/lock_rounds",
    "worker/outbox",
    "worker/own_variables",
    "worker/range_counts",
    "worker/range_read",
    "worker/range_validation",
    "worker/read_run",
    "worker/replies",
    "worker/reply_memory",
    "worker/rerun",
    "worker/root",
    "worker/serial_run",
    "worker/slot",
    "worker/transaction_rows",
    "worker/unchanged_rerun",
    "worker/validation",
    "worker/waits",
    "worker/worker",
    "worker/written_rows",
)
"""All of them together: calls and attributes are fast within what is compiled, and slow across its border. Modules of
messages are not among them: mypyc drops a Struct's class keywords without a word.
"""
_SETUP = """
from pathlib import Path
from mypyc.build import include_dir, mypycify
from setuptools import setup
modules = mypycify({arguments!r}, opt_level="3", debug_level="0")
wrapper = Path(include_dir(), "function_wrapper.c").read_text().replace({unguarded!r}, {guarded!r})
for path in Path("build").glob("__native*.c"):
    path.write_text(path.read_text().replace("#include <function_wrapper.c>", wrapper))
setup(name="styx_compiled", packages=[], ext_modules=modules)
"""
_UNGUARDED: Final = "        self = args[0];\n"
_GUARD: Final = """\
        if (nargs < 1) {
            PyErr_SetString(PyExc_TypeError, "unbound method needs an argument");
            return NULL;
        }
"""
"""`Context.get()`, called of the class and without a context, would end the process: mypyc takes whatever is in memory
where the first argument were.
"""


def remove() -> None:
    """Back to the plain form."""
    _replace(None)


def sources() -> tuple[dict[str, str], dict[str, str]]:
    """By module, such as `worker/slot`: those to compile, and all others of the package."""
    package = ROOT / "styx"
    texts = {str(path.relative_to(package).with_suffix("")): path.read_text() for path in package.rglob("*.py")}
    gone = [module for module in MODULES if module not in texts]
    if gone:
        raise SystemExit(f"MODULES in scripts/compile.d/build.py names {', '.join(gone)}: where is its code now?")
    return {module: texts.pop(module) for module in MODULES}, texts


def build() -> None:
    """Raises `CalledProcessError` if mypyc or the C compiler fails; nothing has changed then."""
    modules = {module: f"styx/{module}.py" for module in MODULES}
    names = [f"styx.{module.replace('/', '.')}" for module in MODULES]
    with tempfile.TemporaryDirectory() as directory:
        copy = Path(directory)
        ignored = shutil.ignore_patterns("__pycache__", f"{compiled.DIRECTORY.name}*")
        shutil.copytree(ROOT / "styx", copy / "styx", ignore=ignored)
        digests = {name: compiled.digest(path.read_bytes()) for name, path in dependencies(names, copy).items()}
        for module, native in native_form(*sources()).items():
            (copy / modules[module]).write_text(native)
        # The sources were checked in their plain form, and strictly.
        (copy / "mypy.ini").write_text("[mypy]\nignore_missing_imports = true\n")
        arguments = ["--config-file=mypy.ini", *modules.values()]
        setup = _SETUP.format(arguments=arguments, unguarded=_UNGUARDED, guarded=_GUARD + _UNGUARDED)
        (copy / "setup_compiled.py").write_text(setup)
        subprocess.run([sys.executable, "setup_compiled.py", "-q", "build_ext", "--inplace"], cwd=copy, check=True)
        _bring_in(copy, names, digests)


def _bring_in(copy: Path, modules: list[str], digests: dict[str, str]) -> None:
    suffix = EXTENSION_SUFFIXES[0]
    made = copy / "made"
    made.mkdir()
    for module in modules:
        shutil.copy(copy / (module.replace(".", "/") + suffix), made / (module + suffix))
    for shared in copy.glob(f"*__mypyc{suffix}"):
        shutil.copy(shared, made)
    sizes = {path.name.removesuffix(suffix): path.stat().st_size for path in sorted(made.iterdir())}
    (made / compiled.MANIFEST).write_text(
        json.dumps({"sources": digests, "extensions": sizes, "made_by": _made_by()}, indent=1)
    )
    _replace(made)


def _replace(made: Path | None) -> None:
    """By renaming: a process that starts meanwhile finds all files as they were, or as they are, or none."""
    # Beside it, for a name is not given to what is on another file system.
    with tempfile.TemporaryDirectory(prefix=f"{compiled.DIRECTORY.name}.", dir=compiled.DIRECTORY.parent) as beside:
        new, old = Path(beside, "new"), Path(beside, "old")
        if made is not None:
            shutil.copytree(made, new)
        if compiled.DIRECTORY.exists():
            compiled.DIRECTORY.rename(old)
        if made is not None:
            new.rename(compiled.DIRECTORY)


def _made_by() -> str:
    """Another list of modules or another compiler makes other extensions of the same sources."""
    scripts = b"".join(path.read_bytes() for path in sorted(Path(__file__).parent.glob("*.py")))
    return str(compiled.digest(scripts + version("mypy").encode()))


def _is_done() -> bool:
    if not compiled.loaded(compiled.form_of(compiled.DIRECTORY, ROOT / "styx", "")).extensions:
        return False
    return bool(json.loads((compiled.DIRECTORY / compiled.MANIFEST).read_bytes()).get("made_by") == _made_by())


def main(arguments: list[str]) -> None:
    """The command."""
    (ROOT / "build").mkdir(exist_ok=True)
    lock = os.open(ROOT / "build" / "compile.lock", os.O_RDWR | os.O_CREAT)
    fcntl.flock(lock, fcntl.LOCK_EX)  # until this process ends
    if arguments == ["--remove"]:
        remove()
    elif arguments:
        sys.exit("usage: scripts/compile [--remove]")
    elif not _is_done():
        sys.stdout.write("compiling the modules that a transaction runs through; this takes a minute\n")
        sys.stdout.flush()
        build()


if __name__ == "__main__":
    main(sys.argv[1:])
