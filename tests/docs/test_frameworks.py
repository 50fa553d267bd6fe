"""The guide's code is the examples' code, which tests/examples runs."""

from __future__ import annotations

import pytest

from tests.docs.snippets import ROOT, Snippet, name, snippets

EXAMPLES = {path.name: path.read_text("utf-8") for path in sorted(ROOT.glob("examples/frameworks/*_*.py"))}
EXAMPLES.pop("__init__.py")
BLOCKS = snippets("docs/frameworks.md")


@pytest.mark.parametrize("snippet", BLOCKS, ids=name)
def test_each_block_is_a_file(snippet: Snippet) -> None:
    assert snippet.code in EXAMPLES.values()


def test_each_file_is_shown() -> None:
    assert sorted(EXAMPLES.values()) == sorted(block.code for block in BLOCKS)
