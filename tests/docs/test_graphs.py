"""Every piece of code in the chapter on graphs runs as it stands; its assertions are the claims of the chapter."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.docs.snippets import Snippet, name, run, snippets

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("snippet", snippets("docs/graphs.md"), ids=name)
def test_snippet(snippet: Snippet, tmp_path: Path) -> None:
    run(snippet.code, tmp_path)
