"""The directory in which `styx up` writes addresses, secret and PIDs of its cluster, for other commands to find it.

There is one for each app. `styx up` holds a lock on it while it runs, so that the files of a killed one do not count as
a cluster.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import msgspec

from styx.cli.exit_codes import USAGE, CommandFailed
from styx.embedded_engine.storage import DataDirectory, DataDirectoryInUse

ROOT: Final = Path(".styx/run")
GATEWAY_URL: Final = "http://127.0.0.1:8080"
"""The default address of `styx dev` and of a gateway."""
_FACTS: Final = "cluster.json"
_SECRET: Final = "secret"
_LOCK: Final = "lock"


class RunFacts(msgspec.Struct, kw_only=True):
    """The addresses of a cluster on this machine. `pids` are by process name; `worker_urls`, by worker name, are the
    addresses of the workers' facts.
    """

    app: str
    cluster: str
    coordinator: str
    facts_url: str
    gateway_urls: list[str]
    secret_file: str
    pids: dict[str, int] = {}
    worker_urls: dict[str, str] = {}


@contextmanager
def held(directory: Path) -> Iterator[None]:
    """Makes and holds the directory meanwhile. The secret stays in it afterwards, because the store needs it.

    Raises `CommandFailed`.
    """
    try:
        lock = DataDirectory(directory)
    except DataDirectoryInUse as error:
        raise CommandFailed(
            f"styx up runs there already (process {error.pid}, {directory}): stop it, or choose another --run-dir"
        ) from None
    except OSError as error:
        raise CommandFailed(f"cannot write to {directory}: {error.strerror}; choose another --run-dir") from None
    with lock:
        try:
            yield
        finally:
            (directory / _FACTS).unlink(missing_ok=True)


def secret_file(directory: Path) -> Path:
    """The file of the cluster's secret."""
    return directory / _SECRET


def write_secret(directory: Path, secret: str) -> None:
    """Writes the cluster's secret, readable by its owner only."""
    path = secret_file(directory)
    path.unlink(missing_ok=True)
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        file.write(secret)


def write_facts(directory: Path, facts: RunFacts) -> None:
    """Writes the facts in one step: a reader finds the old ones or the new ones."""
    new = directory / (_FACTS + ".new")
    new.write_bytes(msgspec.json.format(msgspec.json.encode(facts)))
    new.replace(directory / _FACTS)


def local_cluster(root: Path | None = None) -> RunFacts | None:
    """The cluster that a `styx up` started in this directory runs, None if there is none.

    Raises `CommandFailed` if there are several.
    """
    found = [facts for file in sorted((root or ROOT).glob(f"*/{_FACTS}")) if (facts := _running(file)) is not None]
    if len(found) > 1:
        which = "\n".join(f"    {f.app}: coordinator {f.coordinator}, gateway {f.gateway_urls[0]}" for f in found)
        raise CommandFailed(f"several clusters run here; say which one with --coordinator or --url:\n{which}", USAGE)
    return found[0] if found else None


def gateway_url(url: str | None) -> str:
    """`url`, else the gateway of the cluster that runs here, else `GATEWAY_URL`; raises as `local_cluster`."""
    if url is not None:
        return url
    local = local_cluster()
    return GATEWAY_URL if local is None else local.gateway_urls[0]


def cluster_at(coordinator: str, root: Path | None = None) -> RunFacts | None:
    """The local cluster with this coordinator, None if there is none."""
    for file in sorted((root or ROOT).glob(f"*/{_FACTS}")):
        facts = _running(file)
        if facts is not None and facts.coordinator == coordinator:
            return facts
    return None


def _running(file: Path) -> RunFacts | None:
    try:
        lock = os.open(file.with_name(_LOCK), os.O_RDONLY)
        try:
            fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return msgspec.json.decode(file.read_bytes(), type=RunFacts)
        finally:
            os.close(lock)
    except (OSError, msgspec.DecodeError):
        pass
    return None
