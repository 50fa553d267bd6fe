"""Every piece of code in the chapter on the change feed runs as it stands; its assertions are the chapter's claims."""

from __future__ import annotations

from pathlib import Path

import pytest

from styx.gateway.changes import BEGIN_SECONDS_MAX, PROGRESS_SECONDS, READERS_MAX
from styx.model.limits import MIB
from styx.worker.change_log import LOG_BYTES_MAX, UNFOLLOWED_EPOCHS_MAX
from tests.docs.snippets import ROOT, Snippet, name, run, snippets


@pytest.mark.slow
@pytest.mark.parametrize("snippet", snippets("docs/changes.md"), ids=name)
def test_snippet(snippet: Snippet, tmp_path: Path) -> None:
    run(snippet.code, tmp_path)


def test_the_limits_are_those_of_the_code() -> None:
    text = " ".join((ROOT / "docs/changes.md").read_text("utf-8").split())
    assert f"{LOG_BYTES_MAX // MIB} MiB of them" in text
    assert f"when {UNFOLLOWED_EPOCHS_MAX:,} epochs have closed" in text
    assert f"{READERS_MAX} readers may be connected" in text
    assert f"cannot begin within {BEGIN_SECONDS_MAX:.0f} seconds" in text
    assert PROGRESS_SECONDS == 1.0
