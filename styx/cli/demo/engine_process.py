"""The process that serves the bank: its parent starts, kills and stops it, and it tells the parent when it serves.

python -m styx.cli.demo.engine_process DATA_DIR SNAPSHOT_INTERVAL

It serves on a free port until SIGTERM. It ends with its parent, however that ends: its standard input is a pipe, which
closes then.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from pathlib import Path
from typing import Final, Self

import msgspec

from styx.cli.demo.bank import app
from styx.cli.exit_codes import CommandFailed
from styx.cli.serving import ServingOptions, Start, run_loop, serve_embedded

START_SECONDS_MAX: Final = 60.0
STOP_SECONDS_MAX: Final = 60.0
ERROR_NAME: Final = "demo-engine.log"
"""The file in the data directory for the standard error of the process."""
_TAIL_LINES: Final = 10


class Readiness(msgspec.Struct):
    """The message of the process to its parent when it serves: one line of JSON."""

    url: str
    start: Start


class EngineProcess:
    """A running engine process, as its parent sees it."""

    def __init__(self, process: asyncio.subprocess.Process, readiness: Readiness, errors: Path) -> None:
        self._process = process
        self._readiness = readiness
        self._errors = errors

    @property
    def pid(self) -> int:
        """The process's id."""
        return self._process.pid

    @property
    def url(self) -> str:
        """The URL of its gateway."""
        return self._readiness.url

    @property
    def start_text(self) -> str:
        """How its engine started, for people."""
        start = self._readiness.start
        source = (
            "from the log alone"
            if start.snapshot_epoch is None
            else f"from the snapshot at epoch {start.snapshot_epoch}"
        )
        return f"{start.seconds:.2f} s of them {source} and {start.replayed} epochs run again"

    @classmethod
    async def start(cls, data_dir: Path, snapshot_interval: float) -> Self:
        """Starts the process on `data_dir` and waits until it serves; raises `CommandFailed` if it does not."""
        errors = data_dir / ERROR_NAME
        with errors.open("ab") as stderr:
            process = await asyncio.create_subprocess_exec(
                sys.executable,
                "-m",
                "styx.cli.demo.engine_process",
                str(data_dir),
                str(snapshot_interval),
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=stderr,
                start_new_session=True,  # Ctrl-C is for the parent
            )
        assert process.stdout is not None
        try:
            async with asyncio.timeout(START_SECONDS_MAX):
                line = await process.stdout.readline()
            readiness = msgspec.json.decode(line, type=Readiness)
        except BaseException as error:
            if process.returncode is None:
                process.kill()
            await process.wait()
            if isinstance(error, TimeoutError | msgspec.DecodeError):
                raise CommandFailed(f"the engine process did not start.{_tail(errors)}") from None
            raise
        return cls(process, readiness, errors)

    def kill(self) -> None:
        """SIGKILL: it ends in the middle of whatever it does."""
        os.kill(self._process.pid, signal.SIGKILL)

    async def gone(self) -> None:
        """Waits until it has ended."""
        await self._process.wait()

    async def stop(self) -> None:
        """SIGTERM: it finishes and stores a snapshot; raises `CommandFailed` if it does not end well."""
        self._process.terminate()
        try:
            async with asyncio.timeout(STOP_SECONDS_MAX):
                await self._process.wait()
        except TimeoutError:
            text = f"the engine process did not stop within {STOP_SECONDS_MAX:g} s."
            raise CommandFailed(text + _tail(self._errors)) from None
        failure = self.failure()
        if failure is not None:
            raise failure

    async def end(self) -> None:
        """Kills it if it still runs; returns when it is gone."""
        if self._process.returncode is None:
            self._process.kill()
        await self._process.wait()

    def failure(self) -> CommandFailed | None:
        """The error for its exit code; None if it runs or has ended well."""
        status = self._process.returncode
        if not status:
            return None
        return CommandFailed(f"the engine process ended with exit code {status}.{_tail(self._errors)}")


def _tail(errors: Path) -> str:
    lines = errors.read_text("utf-8", "replace").splitlines()[-_TAIL_LINES:]
    return "\nIts last words:\n" + "\n".join(f"    {line}" for line in lines) if lines else "\nIt said nothing."


async def _main(data_dir: Path, snapshot_interval: float) -> None:
    stop = asyncio.Event()
    # A pipe from the parent that nobody writes to: readable only when the parent is gone.
    asyncio.get_running_loop().add_reader(sys.stdin.fileno(), stop.set)

    def on_started(url: str, start: Start) -> None:
        sys.stdout.buffer.write(msgspec.json.encode(Readiness(url, start)) + b"\n")
        sys.stdout.buffer.flush()

    options = ServingOptions("127.0.0.1", 0, data_dir, snapshot_interval, keep_log=True)
    await serve_embedded(app, options, on_started=on_started, on_stopping=lambda: None, stop=stop)


if __name__ == "__main__":
    run_loop(_main(Path(sys.argv[1]), float(sys.argv[2])))
