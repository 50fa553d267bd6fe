"""Compiles the engine's hot modules with mypyc into `styx/_compiled`; `--remove` undoes it.

Builds elsewhere and brings the extensions in when all of them are there. See "Compiled" in docs/performance.md.
"""

from __future__ import annotations

import json
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
from native_form import native_form  # type: ignore[import-not-found]  # noqa: E402

# Not as the package's module, which would import what is to be built.
_spec = spec_from_file_location("compiled", ROOT / "styx" / "compiled.py")
assert _spec is not None
assert _spec.loader is not None
compiled = module_from_spec(_spec)
_spec.loader.exec_module(compiled)

MODULES: Final = (
    "cluster/worker/reply_log",
    "codec",
    "context",
    "execution",
    "function_spec",
    "log/kafka/batch",
    "sequencer/sequencer",
    "sequencer/tid",
    "worker/ack_share",
    "worker/admission",
    "worker/done_report",
    "worker/executor",
    "worker/external_calls",
    "worker/first_step",
    "worker/footprint",
    "worker/intake",
    "worker/invocation",
    "worker/lock_phase",
    "worker/outbox",
    "worker/outgoing_call",
    "worker/replies",
    "worker/reply_memory",
    "worker/rerun",
    "worker/root",
    "worker/root_accounts",
    "worker/slot",
    "worker/unchanged_rerun",
    "worker/validation",
    "worker/worker",
)
"""All of them together: calls and attributes are fast within what is compiled, and slow across its border. Modules of
messages are not among them: mypyc drops a Struct's class keywords without a word.
"""
_SETUP = """
from mypyc.build import mypycify
from setuptools import setup
setup(name="styx_compiled", packages=[], ext_modules=mypycify({arguments!r}, opt_level="3", debug_level="0"))
"""


def remove() -> None:
    """Back to the plain form."""
    shutil.rmtree(compiled.DIRECTORY, ignore_errors=True)


def build() -> None:
    """Raises `CalledProcessError` if mypyc or the C compiler fails; nothing has changed then."""
    modules = {module: f"styx/{module}.py" for module in MODULES}
    with tempfile.TemporaryDirectory() as directory:
        copy = Path(directory)
        ignored = shutil.ignore_patterns("__pycache__", compiled.DIRECTORY.name)
        shutil.copytree(ROOT / "styx", copy / "styx", ignore=ignored)
        sources = {module: (copy / path).read_bytes() for module, path in modules.items()}
        for module, native in native_form({m: source.decode() for m, source in sources.items()}).items():
            (copy / modules[module]).write_text(native)
        # The sources were checked in their plain form, and strictly.
        (copy / "mypy.ini").write_text("[mypy]\nignore_missing_imports = true\n")
        (copy / "setup_compiled.py").write_text(_SETUP.format(arguments=["--config-file=mypy.ini", *modules.values()]))
        subprocess.run([sys.executable, "setup_compiled.py", "-q", "build_ext", "--inplace"], cwd=copy, check=True)
        _bring_in(copy, {f"styx.{module.replace('/', '.')}": source for module, source in sources.items()})


def _bring_in(copy: Path, sources: dict[str, bytes]) -> None:
    suffix = EXTENSION_SUFFIXES[0]
    made = copy / "made"
    made.mkdir()
    for module in sources:
        shutil.copy(copy / (module.replace(".", "/") + suffix), made / (module + suffix))
    shared = [path.name.removesuffix(suffix) for path in copy.glob(f"*__mypyc{suffix}")]
    for name in shared:
        shutil.copy(copy / (name + suffix), made)
    digests = {module: compiled.digest(source) for module, source in sources.items()}
    (made / compiled.MANIFEST).write_text(
        json.dumps({"sources": digests, "shared": shared, "made_by": _made_by()}, indent=1)
    )
    remove()
    shutil.copytree(made, compiled.DIRECTORY)


def _made_by() -> str:
    """Another list of modules or another compiler makes other extensions of the same sources."""
    scripts = b"".join(path.read_bytes() for path in sorted(Path(__file__).parent.glob("*.py")))
    return str(compiled.digest(scripts + version("mypy").encode()))


def _is_done() -> bool:
    if not compiled.form_of(compiled.DIRECTORY, ROOT / "styx", "").extensions:
        return False
    return bool(json.loads((compiled.DIRECTORY / compiled.MANIFEST).read_bytes()).get("made_by") == _made_by())


def main(arguments: list[str]) -> None:
    """The command."""
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
