"""The code in the README runs as it stands and prints what the README says."""

from __future__ import annotations

from ast import literal_eval
from pathlib import Path

import pytest

from tests.docs.snippets import ROOT, run, snippets

pytestmark = pytest.mark.slow
README_LINES_MAX = 120
"""What a visitor reads."""
BANK, TESTING = snippets("README.md")


def test_it_is_short() -> None:
    assert len((ROOT / "README.md").read_text("utf-8").splitlines()) <= README_LINES_MAX


def test_the_first_code_keeps_its_state(tmp_path: Path) -> None:
    first = run(BANK.code, tmp_path)
    assert first.strip() in (ROOT / "README.md").read_text("utf-8")
    second = literal_eval(run(BANK.code, tmp_path))
    assert second == {entity: 2 * balance for entity, balance in literal_eval(first).items()}


def test_the_code_that_tests_an_app(tmp_path: Path) -> None:
    run(TESTING.code, tmp_path)


def test_the_code_that_tests_an_app_can_fail(tmp_path: Path) -> None:
    with pytest.raises(AssertionError, match="AssertionError"):
        run(TESTING.code.replace("== 70", "== 71"), tmp_path)
