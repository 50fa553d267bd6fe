"""A judgement in a process of its own: its hashes are other ones, and a function that never ends holds up it alone.

The process says on its standard output how far it is, a line a second, and then its verdict. What the app writes there
goes to standard error, of which the end is told if the process fails.
"""

from __future__ import annotations

import asyncio
import os
import secrets
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import IO, Final

from styx.audit.case import CopiedObjects
from styx.audit.judge import judge
from styx.audit.verdict import CannotJudge, Verdict, decode_verdict, encode_verdict
from styx.model.app import App

STUCK_SECONDS_MAX: Final = 600.0
"""Without a sign: the load of a snapshot is the longest part that gives none."""
NICE: Final = 10
"""Those who serve come first."""
_LINE_BYTES_MAX: Final = 16 * 1024 * 1024
_STDERR_BYTES_SHOWN: Final = 2_000
_AT: Final = b"at "
_VERDICT: Final = b"verdict "
_CANNOT: Final = b"cannot "


async def judge_apart(
    command: Sequence[str],
    case: Path,
    objects: Path,
    workers: int | None,
    trace: Path | None = None,
    stuck_s: float = STUCK_SECONDS_MAX,
) -> Verdict:
    """The verdict of a new process on a case. `command` starts it; it gets `run_here`'s arguments as words. Raises
    `CannotJudge`.
    """
    # Also where the deployment runs with a fixed one: the order of a set is to be another one.
    environment = {**os.environ, "PYTHONHASHSEED": str(1 + secrets.randbelow(2**32 - 1))}
    words = [str(case), str(objects), str(workers or 0), *([] if trace is None else [str(trace)])]
    with tempfile.TemporaryFile() as errors:
        process = await asyncio.create_subprocess_exec(
            *command,
            *words,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=errors,
            env=environment,
            limit=_LINE_BYTES_MAX,
        )
        try:
            return await _verdict_of(process, errors, stuck_s)
        finally:
            if process.returncode is None:
                process.kill()
            await process.wait()


async def _verdict_of(process: asyncio.subprocess.Process, errors: IO[bytes], stuck_s: float) -> Verdict:
    assert process.stdout is not None
    at = b""
    while True:
        try:
            line = await asyncio.wait_for(process.stdout.readline(), stuck_s)
        except TimeoutError:
            behind = f" behind epoch {at.decode()}" if at else ""
            raise CannotJudge(f"the replay stood still for {stuck_s:g} s{behind}: does a function not end?") from None
        line = line.rstrip(b"\n")
        if line.startswith(_VERDICT):
            return decode_verdict(line.removeprefix(_VERDICT))
        if line.startswith(_CANNOT):
            raise CannotJudge(line.removeprefix(_CANNOT).decode())
        if line.startswith(_AT):
            at = line.removeprefix(_AT)
            continue
        await process.wait()
        size = errors.seek(0, os.SEEK_END)
        errors.seek(max(0, size - _STDERR_BYTES_SHOWN))
        said = errors.read().decode(errors="replace").strip()
        raise CannotJudge(f"the process that replays has ended, with {process.returncode}: {said}")


def run_here(load: Callable[[], App], words: Sequence[str]) -> None:
    """The program of that process: CASE OBJECTS WORKERS [TRACE]; `load` imports the app, and raises what it likes."""
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    # Functions print what they like.
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    os.nice(NICE)

    def say(what: bytes, text: bytes) -> None:
        answers.write(what + text.replace(b"\n", b" ") + b"\n")
        answers.flush()

    case, objects, workers, *rest = words
    trace = Path(rest[0]) if rest else None
    try:
        app = load()
        verdict = judge(
            Path(case),
            CopiedObjects(Path(objects)),
            app,
            int(workers) or None,
            lambda epoch: say(_AT, b"%d" % epoch),
            trace,
        )
    except CannotJudge as error:
        say(_CANNOT, str(error).encode())
    else:
        say(_VERDICT, encode_verdict(verdict))
