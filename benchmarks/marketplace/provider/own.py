"""A provider for the time of a command, and the book of one that runs.

The application reads the provider's address when it is imported, so it is in the environment before that.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import msgspec

from benchmarks.marketplace.record import Charge
from styx.errors import ConfigurationError

PROVIDER_VARIABLE: Final = "MARKETPLACE_PROVIDER"
OWN: Final = "own"
END_SECONDS_MAX: Final = 10.0
BOOK_SECONDS_MAX: Final = 60.0


class OwnProvider:
    """A provider process of this machine, with its book in `directory`. It can be killed and started again at the same
    address, and ends with this process, however that ends.
    """

    def __init__(self, directory: Path, declined: float = 0.0, unreachable: float = 0.0, seed: int = 1) -> None:
        self.url = ""
        self._usual = {"rejected": declined, "unreachable": unreachable}
        self._port = 0
        self._words = ["--book", str(directory / "book.jsonl"), "--seed", str(seed)]
        self._words += ["--declined", str(declined), "--unreachable", str(unreachable)]
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int | None:
        """Of the process that runs."""
        return None if self._process is None else self._process.pid

    def start(self) -> None:
        """Returns when it answers. Raises `ConfigurationError` if it does not start."""
        words = ["-m", "benchmarks.marketplace.provider", "--port", str(self._port), "--with-parent", *self._words]
        process = subprocess.Popen([sys.executable, *words], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        assert process.stdout is not None
        url = process.stdout.readline().decode().strip()
        if not url:
            raise ConfigurationError(f"the payment provider has not started: exit status {process.wait()}")
        self.url, self._port, self._process = url, int(url.rpartition(":")[2]), process

    def behave(self, *, down: bool = False, delay_ms: float = 0.0) -> None:
        """From now on it answers nobody, or each one so much later; without arguments as at first. Raises `OSError`."""
        body = msgspec.json.encode({**self._usual, "down": down, "delay_ms": delay_ms})
        request = urllib.request.Request(f"{self.url}/behaviour", body, method="POST")
        with urllib.request.urlopen(request, timeout=END_SECONDS_MAX):
            pass

    def kill(self) -> None:
        """Sends SIGKILL, and waits for the end."""
        self._end(subprocess.Popen.kill)

    def stop(self) -> None:
        """Ends it in order."""
        self._end(subprocess.Popen.terminate)

    def _end(self, how: Callable[[subprocess.Popen[bytes]], None]) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        how(process)
        try:
            process.communicate(timeout=END_SECONDS_MAX)
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()


def add_provider_options(parser: argparse._ActionsContainer) -> None:
    """Adds `--provider` and what an own one does."""
    add = parser.add_argument
    add(
        "--provider",
        metavar="own|URL",
        help=f"the payment provider: one that this command starts, or one that runs (default: that of "
        f"{PROVIDER_VARIABLE}; without one the application decides about payments itself)",
    )
    add("--declined", type=float, default=0.0, metavar="PERCENT", help="of the payments that --provider own rejects")
    add("--unreachable", type=float, default=0.0, metavar="PERCENT", help="of the payments that it never answers")


@contextmanager
def own_provider(declined: float = 0.0, unreachable: float = 0.0) -> Iterator[OwnProvider]:
    """A provider that runs, with its address in the environment. Raises `ConfigurationError`."""
    before = os.environ.get(PROVIDER_VARIABLE)
    with tempfile.TemporaryDirectory(prefix="styx-marketplace-provider-") as directory:
        own = OwnProvider(Path(directory), declined, unreachable)
        own.start()
        os.environ[PROVIDER_VARIABLE] = own.url
        try:
            yield own
        finally:
            own.stop()
            _set(before)


@contextmanager
def provided(words: Sequence[str]) -> Iterator[None]:
    """With the provider that a command line asks for in the environment. Raises `ConfigurationError`."""
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    add_provider_options(parser)
    options, _ = parser.parse_known_args(words)
    if options.provider == OWN:
        with own_provider(options.declined, options.unreachable):
            yield
        return
    before = os.environ.get(PROVIDER_VARIABLE)
    if options.provider is not None:
        os.environ[PROVIDER_VARIABLE] = options.provider
    try:
        yield
    finally:
        _set(before)


def _set(url: str | None) -> None:
    if url is None:
        os.environ.pop(PROVIDER_VARIABLE, None)
    else:
        os.environ[PROVIDER_VARIABLE] = url


def provider_of(options: argparse.Namespace) -> str:
    """The provider's address, empty if there is none. Raises `ConfigurationError`."""
    named: str | None = options.provider
    if named is not None and named != OWN:
        return named
    url = os.environ.get(PROVIDER_VARIABLE, "")
    if named == OWN and not url:
        raise ConfigurationError(
            "--provider own is for `python -m benchmarks.marketplace`, which starts it; elsewhere give its URL"
        )
    return url


def read_book(url: str) -> list[Charge]:
    """All that the provider at `url` has decided; it blocks. Raises `OSError`."""
    with urllib.request.urlopen(f"{url.rstrip('/')}/book", timeout=BOOK_SECONDS_MAX) as answer:
        return [_charge.decode(line) for line in answer]


_charge: Final[msgspec.json.Decoder[Charge]] = msgspec.json.Decoder(Charge)
