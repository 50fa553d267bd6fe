"""Every piece of code in the chapter on subscriptions runs as it stands; its assertions are the chapter's claims."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.docs.snippets import Snippet, name, run, snippets

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("snippet", snippets("docs/subscriptions.md"), ids=name)
def test_snippet(snippet: Snippet, tmp_path: Path) -> None:
    run(snippet.code, tmp_path)
