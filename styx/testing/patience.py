"""How long a test waits for what must happen. It never decides a test that holds: only what will not happen takes it.

One number for all, so that a machine that is busy with other work fails nothing. pytest's own `timeout` in
pyproject.toml is longer: it ends what does not even wait.
"""

from __future__ import annotations

from typing import Final

PATIENCE_SECONDS: Final = 600.0
