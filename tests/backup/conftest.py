"""What tests of backups share: no pause before a store is asked again."""

from __future__ import annotations

import pytest


@pytest.fixture
def no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("styx.backup.places.FIRST_PAUSE_SECONDS", 0.0)
