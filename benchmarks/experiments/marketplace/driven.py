"""One run of a workload's own command, as a process of its own: it loads, measures, audits and ends.

The application's settings are those of its process's environment, so settings that are compared need processes of
their own. Each run also begins with the same data and an empty log.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from benchmarks.driver.command import OK, USAGE
from benchmarks.driver.result import Result, read
from benchmarks.experiments.bench import StepFailed
from styx.errors import ConfigurationError

TAIL_LINES: Final = 12
"""Of what a run that failed has said."""


async def driven(workload: str, words: Sequence[str], environment: Mapping[str, str]) -> Result:
    """The result of `python -m benchmarks.WORKLOAD run WORDS`. Raises `ConfigurationError` if it refuses the words, and
    `StepFailed` if it broke, a reply was missed or came twice, or the audit found something.
    """
    with tempfile.TemporaryDirectory(prefix="styx-experiment-") as directory:
        file = Path(directory, "result.json")
        child = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", f"benchmarks.{workload}", "run", *words, "--quiet", "--out", str(file)),
            env={**os.environ, **environment},
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
            start_new_session=True,  # an interrupt reaches it once, from here, so that it can end its services
        )
        try:
            said, _ = await child.communicate()
        finally:
            if child.returncode is None:
                child.send_signal(signal.SIGINT)
                await child.wait()
        if child.returncode != OK:
            tail = "\n".join(said.decode(errors="replace").strip().splitlines()[-TAIL_LINES:])
            refused = child.returncode == USAGE
            raise ConfigurationError(tail) if refused else StepFailed(f"{workload} run {' '.join(words)}:\n{tail}")
        result = read(file)
    assert isinstance(result, Result), "`run` writes one"
    return result
