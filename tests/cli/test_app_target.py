"""`MODULE:APP` and everything that can be wrong with it."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from styx.cli.app_target import load_app
from styx.cli.exit_codes import FAILURE, USAGE, CommandFailed

BANK = """
from styx import App, Operator
account = Operator("account")
app = App("bank", operators=[account])
other = App("other", operators=[])
class holder:
    app = app
number = 7
"""


@pytest.fixture(autouse=True)
def directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """An empty current directory; what tests import from it is forgotten again."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    before = set(sys.modules)
    yield tmp_path
    for name in set(sys.modules) - before:
        del sys.modules[name]


def write(path: str, text: str = BANK) -> None:
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    Path(path).write_text(text)


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("tbank:app", "bank"),
        ("tbank", "bank"),
        ("tbank:other", "other"),
        ("tbank:holder.app", "bank"),
        ("tbank.py:app", "bank"),
        ("./tbank.py", "bank"),
        ("./tbank:app", "bank"),
    ],
)
def test_module_or_file(text: str, name: str) -> None:
    write("tbank.py")
    assert load_app(text).name == name


def test_file_with_neighbours() -> None:
    write("src/tneighbour.py")
    write("src/tmain.py", "from tneighbour import app")
    assert load_app("src/tmain.py:app").name == "bank"


def test_file_in_a_package() -> None:
    write("src/tshop/__init__.py", "")
    write("src/tshop/inner/__init__.py", "from ..bank import app")
    write("src/tshop/bank.py")
    assert load_app("src/tshop/inner/__init__.py:app").name == "bank"
    assert load_app(str(Path("src/tshop/bank.py").resolve()) + ":app").name == "bank"
    assert "tshop.bank" in sys.modules


def refused(text: str) -> CommandFailed:
    with pytest.raises(CommandFailed) as raised:
        load_app(text)
    assert len(raised.value.message.splitlines()) <= 3
    return raised.value


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("tbnak:app", "no module 'tbnak' in {cwd} or among the installed ones.\nDid you mean tbank:app?"),
        ("nothing_like_it:app", "\nStart it where the module is, or give a file"),
        ("tbank.inner:app", "no module 'tbank.inner'"),
        ("tnowhere.inner:app", "no module 'tnowhere'"),
        ("tbnak.py:app", "there is no file tbnak.py.\nDid you mean tbank.py:app?"),
        ("nowhere/tbank.py", "there is no file nowhere/tbank.py"),
        ("tbank:ap", "module 'tbank' has no 'ap'.\nDid you mean tbank:app or tbank:other?"),
        ("tbank.py:ap", "Did you mean tbank.py:app or tbank.py:other?"),
        ("tbank:number", "is of type int, not an App.\nDid you mean tbank:app"),
        ("tbank:holder", "is of type type, not an App"),
        ("tbank:", "is no MODULE:APP"),
        (":app", "is no MODULE:APP"),
        ("tbank:make()", "is no MODULE:APP"),
        ("t-bank:app", "is no module's name"),
        ("t-bank.py:app", "a module's name has letters"),
        ("tempty:app", "It has no App at all"),
    ],
)
def test_not_there(directory: Path, text: str, complaint: str) -> None:
    write("tbank.py")
    write("t-bank.py")
    write("tempty.py", "")
    error = refused(text)
    assert complaint.format(cwd=directory) in error.message
    assert error.exit_code == USAGE


@pytest.mark.parametrize(
    ("source", "complaint"),
    [
        (
            "import styx\nimport notinstalled_x",
            "tbad.py:2\n    import notinstalled_x\nModuleNotFoundError: No module named",
        ),
        ("def f():\n    1 / 0\nf()", "tbad.py:2\n    1 / 0\nZeroDivisionError: division by zero"),
        ("x = (", "tbad.py:1\n    x = (\nSyntaxError: '(' was never closed"),
        ("raise SystemExit(3)", "tbad.py:1\n    raise SystemExit(3)\nSystemExit: 3"),
        ("raise KeyError('who')", "KeyError: who"),
        (
            "import styx\nstyx.Operator('no name')",
            "tbad.py:2\n    styx.Operator('no name')\nConfigurationError: an operator's",
        ),
        (
            "import styx\no = styx.Operator('o')\n@o.register\nasync def f(ctx, a: 'Nowhere'): ...\n"
            "app = styx.App('a', [o])",
            "tbad.py:5\n    app = styx.App('a', [o])\nConfigurationError: o.f",
        ),
        ("import tbad.inner", "ModuleNotFoundError"),
        ("import json\njson.loads('{')", "JSONDecodeError"),
    ],
)
def test_mistake_in_the_module(source: str, complaint: str) -> None:
    write("tbad.py", source)
    error = refused("tbad:app")
    assert "importing tbad failed at " in error.message
    assert complaint in error.message
    assert error.exit_code == FAILURE


def test_file_with_a_name_that_is_taken() -> None:
    write("json.py")
    error = refused("json.py:app")
    assert "has the name of another module" in error.message
    assert error.exit_code == USAGE
