"""The services for a command of this package: a new directory, and a broker and an object store that can be killed and
started again.

`LocalServices` runs both on this machine with the project's `scripts/services`. Tests of a cluster on other machines
pass their own `Service`.
"""

from __future__ import annotations

import logging
import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final, Protocol

from styx.errors import ConfigurationError
from styx.process.ports import free_port

SCRIPT: Final = Path(__file__).parents[2] / "scripts/services"
COMMAND_SECONDS_MAX: Final = 1_800
"""The limit is long because an installation may build MinIO."""


class Service(Protocol):
    """A server in a separate process. Both methods block until they are done."""

    def kill(self) -> None:
        """SIGKILL."""

    def start(self) -> None:
        """Starts the server again at the same address, with its stored data."""


class Server(Service, Protocol):
    """A server on this machine, which can also be stopped in order, and frozen."""

    def stop(self) -> None:
        """SIGTERM, and waits for its end."""

    def freeze(self) -> None:
        """SIGSTOP: its connections stay open, and nobody answers."""

    def thaw(self) -> None:
        """SIGCONT."""


def signal_service(data: str, name: str, number: signal.Signals) -> None:
    """Sends a signal to the server of this name that runs in the folder `data` of `scripts/services`."""
    os.kill(int(Path(data, name, "pid").read_text()), number)


class LocalService:
    """One of the servers that `scripts/services` runs: `kafka` or `minio`."""

    def __init__(self, name: str, environment: dict[str, str]) -> None:
        self.name = name
        self._environment = environment

    def kill(self) -> None:
        """As `Service.kill`."""
        self._command("kill")

    def start(self) -> None:
        """As `Service.start`."""
        self._command("start")

    def stop(self) -> None:
        """SIGTERM, and waits for its end."""
        self._command("stop")

    def freeze(self) -> None:
        """As `Server.freeze`."""
        signal_service(self._environment["STYX_SERVICES_DATA"], self.name, signal.SIGSTOP)

    def thaw(self) -> None:
        """As `Server.thaw`."""
        signal_service(self._environment["STYX_SERVICES_DATA"], self.name, signal.SIGCONT)

    def _command(self, verb: str) -> None:
        done = subprocess.run(
            [SCRIPT, verb, self.name],
            check=False,
            env=self._environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=COMMAND_SECONDS_MAX,
        )
        if done.returncode:
            raise OSError(f"{SCRIPT} {verb} {self.name} failed: {done.stderr.strip()}")


class LocalServices:
    """Kafka and MinIO on free ports of this machine, in a temporary directory."""

    def __init__(self, directory: Path) -> None:
        kafka_port, minio_port = free_port(following=1), free_port()
        environment = {
            **os.environ,
            "STYX_SERVICES_DATA": str(directory),
            "STYX_KAFKA_PORT": str(kafka_port),
            "STYX_MINIO_PORT": str(minio_port),
        }
        self.kafka = LocalService("kafka", environment)
        self.minio = LocalService("minio", environment)
        self.kafka_address = f"127.0.0.1:{kafka_port}"
        self.s3_endpoint = f"http://127.0.0.1:{minio_port}"


@contextmanager
def local_services() -> Iterator[LocalServices]:
    """Runs both services inside of the block, and removes their data after it. Raises `ConfigurationError` or
    `OSError`.
    """
    if not SCRIPT.exists():
        raise ConfigurationError(f"{SCRIPT} is not there: run this from a copy of the repository")
    directory = Path(tempfile.mkdtemp(prefix="styx-services-"))
    services = LocalServices(directory)
    try:
        services.kafka.start()
        services.minio.start()
        yield services
    finally:
        services.kafka.stop()
        services.minio.stop()
        shutil.rmtree(directory, ignore_errors=True)


def working_directory(name: str) -> Path:
    """Makes a directory for the processes and logs of the command `name`, and prints its path."""
    # aiokafka logs each attempt to reach a broker that is away.
    logging.getLogger("aiokafka").setLevel(logging.CRITICAL)
    directory = Path(tempfile.mkdtemp(prefix=f"styx-{name}-"))
    print(f"the processes' logs are in {directory}", flush=True)
    return directory
