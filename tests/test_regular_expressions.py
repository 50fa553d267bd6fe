"""Every regular expression in the package is a module's constant and never goes back over what it has matched.

One that does can take time quadratic in its input, or worse; most inputs are somebody else's.
"""

from __future__ import annotations

import ast
import importlib
import re
from collections.abc import Iterator
from pathlib import Path
from re import _constants as codes  # type: ignore[attr-defined]
from re import _parser as parser  # type: ignore[attr-defined]
from typing import Any

import pytest

import styx

ROOT = Path(styx.__file__).parent
USING = sorted(
    path for path in ROOT.rglob("*.py") if any(line == "import re" for line in path.read_text().splitlines())
)


def backtracking(tokens: Any) -> Iterator[str]:
    """The parts that could match in more than one length and be tried again."""
    for code, argument in tokens:
        if code in (codes.MAX_REPEAT, codes.MIN_REPEAT):
            low, high, repeated = argument
            if low != high:
                yield f"{code} {low} to {high}"
            yield from backtracking(repeated)
        elif code is codes.POSSESSIVE_REPEAT:
            yield from backtracking(argument[2])
        elif code is codes.SUBPATTERN:
            yield from backtracking(argument[3])
        elif code is codes.ATOMIC_GROUP:
            yield from backtracking(argument)
        elif code in (codes.ASSERT, codes.ASSERT_NOT):
            yield from backtracking(argument[1])
        elif code is codes.BRANCH:
            for branch in argument[1]:
                yield from backtracking(branch)
        elif code is codes.GROUPREF_EXISTS:
            raise AssertionError("a condition on a group: look at it")


def found_in(pattern: str | bytes) -> list[str]:
    return list(backtracking(parser.parse(pattern)))


@pytest.mark.parametrize("pattern", [r"a*b", r"(?:a|b)+?c", r"x(a{1,9})", r"(?=a*)", r"(?:[ab]*c)++"])
def test_the_test_sees_them(pattern: str) -> None:
    assert found_in(pattern)


@pytest.mark.parametrize("pattern", [r"a*+b", r"(?>[ab]c)", r"x(a{9})", r"(?:[ab]*+c)++", r"%(?![0-9])"])
def test_the_test_knows_what_is_fine(pattern: str) -> None:
    assert not found_in(pattern)


@pytest.mark.parametrize("path", USING, ids=lambda path: str(path.relative_to(ROOT)))
def test_no_backtracking(path: Path) -> None:
    tree = ast.parse(path.read_text())
    calls = [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "re"
    ]
    # Annotations may name re.Pattern.
    assert {node.attr for node in calls} <= {"compile", "Pattern", "Match", "DOTALL", "MULTILINE", "ASCII"}
    module = importlib.import_module("styx." + ".".join(path.relative_to(ROOT).with_suffix("").parts))
    patterns = [value for value in vars(module).values() if isinstance(value, re.Pattern)]
    assert len(patterns) >= sum(node.attr == "compile" for node in calls), "one is not a constant of its module"
    for pattern in patterns:
        assert not found_in(pattern.pattern), pattern.pattern


def test_it_is_imported_under_its_name_only() -> None:
    for path in ROOT.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom):
                assert node.module not in ("re", "sre_compile"), path
            elif isinstance(node, ast.Import):
                assert not any(name.name == "re" and name.asname for name in node.names), path
