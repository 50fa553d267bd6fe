"""`MODULE:APP`: from the typed text to the App object, or to an error that proposes a text.

The user's module is imported, as Python would do it. A mistake in the module is reported with its line.
"""

from __future__ import annotations

import importlib
import os
import sys
import traceback
from difflib import get_close_matches
from pathlib import Path
from types import ModuleType
from typing import Final, NamedTuple

from styx.cli.exit_codes import CommandFailed, usage_error
from styx.model.app import App

DEFAULT_NAME: Final = "app"
_HERE: Final = "\nStart it where the module is, or give a file: src/bank.py:app"


class _Target(NamedTuple):
    """A module and the name in it; `text` is as typed, `path` the file if the module was given as one."""

    text: str
    module: str
    name: str
    path: Path | None


def load_app(text: str) -> App:
    """The App that `text` names, as `bank:app`, `shop.bank:app` or `src/bank.py:app`; `:app` may be left out.

    The current directory (for a file: the directory its package stands in) goes to the front of `sys.path`. Raises
    `CommandFailed`: exit code 2 if there is no such App, 1 if the module itself fails.
    """
    target = _parse(text)
    module = _import(target)
    value: object = module
    for part in target.name.split("."):
        try:
            value = getattr(value, part)
        except AttributeError:
            raise _no_such_name(target, module) from None
    if not isinstance(value, App):
        kind = type(value).__name__
        raise usage_error(f"{target.module}:{target.name} is of type {kind}, not an App.{_apps_in(target, module)}")
    return value


def _parse(text: str) -> _Target:
    module, colon, name = text.rpartition(":")
    if not colon:
        module, name = text, DEFAULT_NAME
    if not module or not all(part.isidentifier() for part in name.split(".")):
        raise usage_error(f"{text!r} is no MODULE:APP; one looks like bank:app, shop.bank:app or src/bank.py:app")
    if module.endswith(".py") or os.sep in module:
        return _file_target(text, Path(module), name)
    if not all(part.isidentifier() for part in module.split(".")):
        raise usage_error(f"{module!r} is no module's name; a file is given with its ending, as in bank.py:{name}")
    sys.path.insert(0, os.getcwd())
    return _Target(text, module, name, None)


def _file_target(text: str, path: Path, name: str) -> _Target:
    file = path if path.suffix == ".py" else path.with_name(path.name + ".py")
    if not file.is_file():
        near = [str(found) for found in sorted(file.parent.glob("*.py")) if found.stem.isidentifier()]
        raise usage_error(f"there is no file {file}.{_did_you_mean(str(file), near, name)}")
    file = file.resolve()
    parts, root = [file.stem], file.parent
    while (root / "__init__.py").is_file():
        parts.insert(0, root.name)
        root = root.parent
    if parts[-1] == "__init__":
        parts.pop()
    if not all(part.isidentifier() for part in parts):
        raise usage_error(f"{file.name} cannot be imported: a module's name has letters, digits and _ only; rename it")
    sys.path.insert(0, str(root))
    return _Target(text, ".".join(parts), name, file)


def _import(target: _Target) -> ModuleType:
    importlib.invalidate_caches()
    try:
        module = importlib.import_module(target.module)
    except ModuleNotFoundError as error:
        if error.name is not None and (target.module + ".").startswith(error.name + "."):
            raise _no_such_module(target, error.name) from None
        raise _failed_import(target, error) from error
    except (Exception, SystemExit) as error:
        raise _failed_import(target, error) from error
    found = getattr(module, "__file__", None)
    if target.path is not None and (found is None or Path(found).resolve() != target.path):
        raise usage_error(
            f"{target.path.name} has the name of another module, {found or 'a built-in one'}, which came first.\n"
            "Rename the file."
        )
    return module


def _no_such_module(target: _Target, missing: str) -> CommandFailed:
    here = Path.cwd()
    modules = [file.stem for file in here.glob("*.py")] + [file.parent.name for file in here.glob("*/__init__.py")]
    names = [name for name in modules if name.isidentifier()]
    if missing != target.module and "." in target.module:
        return usage_error(
            f"there is no module {missing!r} for {target.module!r} in {here} or among the installed ones."
        )
    return usage_error(
        f"there is no module {missing!r} in {here} or among the installed ones."
        f"{_did_you_mean(missing, sorted(names), target.name)}"
    )


def _failed_import(target: _Target, error: BaseException) -> CommandFailed:
    """The error for a mistake in the user's module, with the last line of the user's code that ran."""
    from styx.errors import describe
    from styx.model.user_frames import is_of_engine

    if isinstance(error, SyntaxError):
        where, line = f"{error.filename}:{error.lineno}", (error.text or "").strip()
        what = f"SyntaxError: {error.msg}"
    else:
        frames = traceback.extract_tb(error.__traceback__)
        theirs = [
            f
            for f in frames
            if not (f.filename.startswith("<frozen") or f.filename == importlib.__file__ or is_of_engine(f.filename))
        ]
        last = (theirs or frames)[-1]
        where, line = f"{last.filename}:{last.lineno}", last.line or ""
        what = ": ".join(filter(None, describe(error)))
    source = f"\n    {line}" if line else ""
    return CommandFailed(f"importing {target.module} failed at {where}{source}\n{what}")


def _no_such_name(target: _Target, module: ModuleType) -> CommandFailed:
    return usage_error(f"module {target.module!r} has no {target.name!r}.{_apps_in(target, module)}")


def _apps_in(target: _Target, module: ModuleType) -> str:
    """A hint: the module's Apps, or how to make one."""
    names = [name for name, value in vars(module).items() if isinstance(value, App)]
    module_text = target.text.rpartition(":")[0] or target.text
    if names:
        return "\nDid you mean " + " or ".join(f"{module_text}:{name}" for name in names) + "?"
    return f'\nIt has no App at all; make one there: {DEFAULT_NAME} = App("NAME", operators=[…])'


def _did_you_mean(typed: str, candidates: list[str], name: str) -> str:
    near = get_close_matches(typed, candidates, n=3, cutoff=0.5)
    return "\nDid you mean " + " or ".join(f"{found}:{name}" for found in near) + "?" if near else _HERE
