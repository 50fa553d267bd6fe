"""How long a test waits for an event that must happen. A passing test never waits that long; only an event that never
happens takes the whole time.

One number for all tests, so that a busy machine fails no test. pytest's own `timeout` in pyproject.toml is longer: it
ends a test that hangs without waiting.
"""

from __future__ import annotations

from typing import Final

PATIENCE_SECONDS: Final = 600.0
