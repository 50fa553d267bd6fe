"""How the commands of this package begin: quiet, and with a directory of their own for what they start."""

from __future__ import annotations

import logging
import tempfile
from pathlib import Path


def working_directory(name: str) -> Path:
    """A new directory for the processes of the command `name`, whose logs will be there, which is said."""
    # It tells of each attempt to reach a broker that is away.
    logging.getLogger("aiokafka").setLevel(logging.CRITICAL)
    directory = Path(tempfile.mkdtemp(prefix=f"styx-{name}-"))
    print(f"the processes' logs are in {directory}", flush=True)
    return directory
