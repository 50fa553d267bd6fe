"""The embedded engine's metrics in Prometheus' text format, made of plain numbers when somebody asks. Counts nothing itself."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from styx.embedded_engine.engine import EmbeddedEngine


def render(engine: EmbeddedEngine) -> str:
    """All of them, ending with a newline."""
    return f"styx_ready {int(engine.ready)}\n"
