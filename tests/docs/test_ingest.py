"""Every piece of code on the page about records and events from outside runs as it stands."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.docs.snippets import Snippet, name, run, snippets

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("snippet", snippets("docs/ingest.md"), ids=name)
def test_snippet(snippet: Snippet, tmp_path: Path) -> None:
    run(snippet.code, tmp_path)
