"""A real Kafka broker and a real MinIO server for tests: the fixtures `kafka` and `minio`, one of each per process of a
pytest run; and the programs `judge`, which is adya, and `helm`, which start nothing.

They run the programs that `scripts/services` installs, on free ports and in a temporary folder, never those that a
developer has running. A test that needs one has it as a parameter, is marked `slow`, and keeps to topics or to a prefix
of its own. What cannot be installed fails the test; STYX_TESTS_WITHOUT_SERVICES=1 skips it.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Generator, Iterator
from functools import cache
from pathlib import Path
from typing import ClassVar, Final, TypeVar

import pytest

from proof.cluster.services import signal_service
from styx.process.ports import free_port
from styx.testing.patience import PATIENCE_SECONDS

SCRIPT: Final = Path(__file__).parents[1] / "scripts/services"
SKIP_VARIABLE: Final = "STYX_TESTS_WITHOUT_SERVICES"

FOLDER_PREFIX: Final = "styx-test-services-"
"""Then the PID of the pytest process that owns the folder."""
INSTALL_SECONDS_MAX: Final = 1800
"""Building MinIO takes a few minutes on two idle cores."""
COMMAND_SECONDS_MAX: Final = PATIENCE_SECONDS
"""Longer than the script itself waits for a start and for a stop."""
JAVA_OPTIONS: Final = ("JDK_JAVA_OPTIONS", "-XX:TieredStopAtLevel=1")
"""For every broker of the tests, which lives for seconds: without the optimising compiler it starts in half of the
processor time."""


S = TypeVar("S", bound="RealService")


class ServiceFailed(Exception):
    """`scripts/services` could not do what it was told; the text is what it said."""


class RealService:
    """One server of this pytest process, in a folder of its own."""

    name: ClassVar[str]

    def __init__(self, folder: Path, port: int, environment: dict[str, str] | None = None) -> None:
        self.port = port
        self._environment = {
            **os.environ,
            **(environment or {}),
            "STYX_SERVICES_DATA": str(folder),
            f"STYX_{self.name.upper()}_PORT": str(port),
        }

    def start(self) -> None:
        """Starts it and waits until it answers; what it had stored is there again. Raises ServiceFailed."""
        self._command("start", COMMAND_SECONDS_MAX)

    def stop(self) -> None:
        """SIGTERM, and waits for its end."""
        self._command("stop", COMMAND_SECONDS_MAX)

    def kill(self) -> None:
        """SIGKILL, and waits for its end. `start` brings it back at the same address."""
        self._command("kill", COMMAND_SECONDS_MAX)

    def freeze(self) -> None:
        """SIGSTOP: its connections stay open, and nobody answers."""
        signal_service(self._environment["STYX_SERVICES_DATA"], self.name, signal.SIGSTOP)

    def thaw(self) -> None:
        """SIGCONT."""
        signal_service(self._environment["STYX_SERVICES_DATA"], self.name, signal.SIGCONT)

    def _command(self, verb: str, seconds_max: float) -> None:
        _run([verb, self.name], self._environment, seconds_max)


class RealKafka(RealService):
    """A broker without topics. `start` takes 4 s after a `kill`, and 2 s after a `stop`, if the machine is idle.

    A transaction that was committed just before a `kill` may stay open for readers of committed records, for ever: see
    `docs/services.md`.
    """

    name = "kafka"

    @property
    def bootstrap(self) -> str:
        """HOST:PORT."""
        return f"127.0.0.1:{self.port}"


class RealMinio(RealService):
    """An S3 server with an empty bucket `styx`, on plain HTTP."""

    name = "minio"
    access_key = "minioadmin"
    secret_key = "minioadmin"

    @property
    def endpoint(self) -> str:
        """HOST:PORT, as the `minio` package wants it."""
        return f"127.0.0.1:{self.port}"


def pytest_configure() -> None:
    """Benchmarks and judge start brokers of their own, which inherit this."""
    os.environ.setdefault(*JAVA_OPTIONS)


@pytest.fixture(scope="session")
def kafka() -> Iterator[RealKafka]:
    yield from _running(RealKafka)


@pytest.fixture(scope="session")
def other_kafka(kafka: RealKafka) -> Iterator[RealKafka]:
    """A second broker, for a test that moves a cluster."""
    yield from _running(RealKafka)


@pytest.fixture(scope="module")
def kafka_of_its_own() -> Iterator[RealKafka]:
    """A broker for a module that kills it, in place of `kafka`: one with everybody's topics takes minutes to come back
    on a busy machine, and whoever comes later would meet none if it did not.
    """
    yield from _running(RealKafka)


@pytest.fixture(scope="session")
def minio() -> Iterator[RealMinio]:
    yield from _running(RealMinio)


@pytest.fixture(scope="session")
def judge() -> None:
    """adya is installed where `proof.judge.adya` finds it."""
    _require("judge")


@pytest.fixture(scope="session")
def helm() -> Path:
    """The program helm, as `scripts/services` builds it: what charts come to must not depend on its version."""
    _require("helm")
    home = os.environ.get("STYX_SERVICES") or Path.home() / ".cache/styx-services"
    return Path(home, "bin/helm")


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """Installs what the test needs before the test's time limit begins to run."""
    for name in {"kafka", "minio", "judge", "helm"} & set(getattr(item, "fixturenames", ())):
        _why_not_installed(name)
    return (yield)


@cache  # tried once a run
def _why_not_installed(name: str) -> str:
    """Installs it; what went wrong, or nothing."""
    if os.environ.get(SKIP_VARIABLE) == "1":
        return ""
    try:
        _run(["install", name], dict(os.environ), INSTALL_SECONDS_MAX)
    except ServiceFailed as failure:
        return str(failure)
    return ""


def _require(name: str) -> None:
    if os.environ.get(SKIP_VARIABLE) == "1":
        pytest.skip(f"{SKIP_VARIABLE}=1: without {name}")
    if why := _why_not_installed(name):
        pytest.fail(f"{why}\n{SKIP_VARIABLE}=1 skips the tests that need it.", pytrace=False)


def _running(kind: type[S]) -> Iterator[S]:
    _require(kind.name)
    end_leftovers()
    folder = Path(tempfile.mkdtemp(prefix=f"{FOLDER_PREFIX}{os.getpid()}-"))
    service = kind(folder, free_port(following=1))
    try:
        service.start()
        yield service
    finally:
        service.stop()
        shutil.rmtree(folder)


def end_leftovers() -> None:
    """Ends the servers of earlier runs that were killed before they could do it. Another run may do the same now."""
    for folder in Path(tempfile.gettempdir()).glob(f"{FOLDER_PREFIX}*"):
        run = int(folder.name.removeprefix(FOLDER_PREFIX).partition("-")[0])
        if not _is_alive(run) and os.access(folder, os.W_OK):
            _run(["down"], {**os.environ, "STYX_SERVICES_DATA": str(folder)}, COMMAND_SECONDS_MAX)
            shutil.rmtree(folder, ignore_errors=True)


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    return True


def _run(words: list[str], environment: dict[str, str], seconds_max: float) -> None:
    try:
        done = subprocess.run(
            [SCRIPT, *words],
            check=False,
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=seconds_max,
        )
    except subprocess.TimeoutExpired as late:
        raise ServiceFailed(f"scripts/services {' '.join(words)}: not done after {seconds_max} s") from late
    if done.returncode:
        raise ServiceFailed(f"scripts/services {' '.join(words)}: {done.stderr.strip()}")
