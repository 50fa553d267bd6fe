"""Every piece of code in the user guide runs as it stands; its assertions are the guide's claims."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.docs.snippets import Snippet, name, run, snippets

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("snippet", snippets("docs/programming.md"), ids=name)
def test_snippet(snippet: Snippet, tmp_path: Path) -> None:
    run(snippet.code, tmp_path)
