"""Whatever a document names, a file, a test, a limit or a heading, is there."""

from __future__ import annotations

import re
from pathlib import Path

import msgspec
import pytest

import styx
from tests.docs.snippets import ROOT

DOCUMENTS = ["README.md", "CONTRIBUTING.md", "CHANGELOG.md", *(f"docs/{path.name}" for path in ROOT.glob("docs/*.md"))]
_PATH = re.compile(r"`((?:styx|tests|docs|scripts|examples|benchmarks)/[\w./-]+)(?:::(\w+))?`")
_LINK = re.compile(r"\]\((?!https?:)([^)#\s]*)(?:#([^)]+))?\)")
_LIMIT_ROW = re.compile(r"^\| `(\w+)` \| ([\d,]+)( [KM]iB)? \|", re.MULTILINE)
MADE = {"styx/_compiled"}
"""By scripts, and not in a fresh checkout."""
_UNITS = {"": 1, " KiB": 1024, " MiB": 1024 * 1024}


def text_of(document: str) -> str:
    return (ROOT / document).read_text("utf-8")


def anchors(path: Path) -> set[str]:
    headings = re.findall(r"^#+ (.+)$", path.read_text("utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("document", DOCUMENTS)
def test_files_and_tests_that_are_named_exist(document: str) -> None:
    for path, test in _PATH.findall(text_of(document)):
        assert path in MADE or (ROOT / path).exists(), f"{document} names {path}"
        if test:
            assert f"def {test}(" in (ROOT / path).read_text("utf-8"), f"{document} names {path}::{test}"


@pytest.mark.parametrize("document", DOCUMENTS)
def test_links_lead_somewhere(document: str) -> None:
    for target, anchor in _LINK.findall(text_of(document)):
        path = (ROOT / document).parent / target if target else ROOT / document
        assert path.exists(), f"{document} links to {target}"
        assert not anchor or anchor in anchors(path), f"{document} links to {target}#{anchor}"


@pytest.mark.parametrize("document", DOCUMENTS)
def test_lines_are_short(document: str) -> None:
    lines = text_of(document).splitlines()
    # Tables, links and pasted output cannot be wrapped.
    long = [line for line in lines if len(line) > 120 and not line.startswith(("|", "![", "    "))]
    assert not long


def test_the_table_of_limits_is_complete_and_true() -> None:
    listed = {
        name: int(number.replace(",", "")) * _UNITS[unit]
        for name, number, unit in _LIMIT_ROW.findall(text_of("docs/programming.md"))
    }
    assert listed == msgspec.structs.asdict(styx.Limits())
