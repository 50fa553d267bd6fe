"""What counts as the app's own code, and which imports a function makes when it runs."""

from __future__ import annotations

import importlib
import json
import types
from typing import Any

import msgspec
import pytest

import styx
from examples import bank
from styx.deployment.user_code import dependencies, finds_user_code, imported_names, is_user_code, user_modules
from tests.deployment.conftest import Load


def test_what_is_installed_is_not_the_apps_own() -> None:
    for module in (json, msgspec, styx, importlib, types.ModuleType("dynamic")):
        assert not is_user_code(module)
    assert is_user_code(bank)
    assert "examples.bank" in user_modules()


def test_a_module_that_was_installed_beside_others(load: Load) -> None:
    files = {
        "tinstalled/__init__.py": "",
        "tinstalled/part.py": "",
        "town.py": "",
        "tinstalled-1.0.dist-info/METADATA": "",
    }
    record = {"tinstalled-1.0.dist-info/RECORD": "tinstalled/__init__.py,,\ntinstalled/part.py,,\n"}
    assert not is_user_code(load({**files, **record}, "tinstalled.part"))
    assert is_user_code(load({}, "town"))


@pytest.mark.parametrize(
    ("name", "found"),
    [("examples.shop", True), ("examples", True), ("msgspec", False), ("json", False), ("nosuch.module", False)],
)
def test_finding_what_nobody_imported(name: str, found: bool) -> None:
    assert finds_user_code(name) is found


def test_distributions_of_modules() -> None:
    found = dependencies(
        ["msgspec.json", "msgspec", "yaml.nodes", "tnobody.x", "json.decoder", "styx.model.app", "__main__"]
    )
    assert [(one.distribution, one.modules) for one in found] == [
        ("PyYAML", ["yaml"]),
        ("msgspec", ["msgspec"]),
        ("tnobody", ["tnobody"]),
    ]
    assert [bool(one.version) for one in found] == [True, True, False]


def test_imports_in_functions() -> None:
    source = """
def f():
    import a.b
    from c import d, e
    def inner():
        from . import sibling
        from ..up import name
        from ....too.far import x
"""
    space: dict[str, Any] = {"__package__": "top.middle"}
    exec(compile(source, "f", "exec"), space)  # noqa: S102 - a source of this test
    assert imported_names(space["f"].__code__, space) == [
        *("a", "a.b", "c", "c.d", "c.e"),
        *("top", "top.middle", "top.middle.sibling", "top.up", "top.up.name"),
    ]
