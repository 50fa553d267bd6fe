"""A new PostgreSQL server, made by `initdb` in a temporary directory, on a free port, with the default durability.
Afterwards it is removed.

PostgreSQL refuses to run as root; for root it runs as `postgres`, or as `nobody` where there is no such user.
"""

from __future__ import annotations

import os
import pwd
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, NamedTuple

from styx.errors import ConfigurationError
from styx.process.ports import free_port

DEBIAN: Final = Path("/usr/lib/postgresql")
"""Where Debian and its derivatives keep the binaries, by major version."""
USERS: Final = ("postgres", "nobody")
DATABASE: Final = "postgres"
START_SECONDS_MAX: Final = 60
STOP_SECONDS_MAX: Final = 60
SHARED_BUFFERS_SHARE: Final = 0.25
"""Of the machine's memory, as PostgreSQL's manual recommends."""
SHARED_BUFFERS_MIB_MAX: Final = 4096
CONNECTIONS_MAX: Final = 200
SETTINGS: Final = {
    "fsync": "on",
    "synchronous_commit": "on",
    "full_page_writes": "on",
    "autovacuum": "on",
    "default_transaction_isolation": "serializable",
    "max_connections": str(CONNECTIONS_MAX),
    # No checkpoint for the sake of volume within a run; those for the sake of time stay as by default.
    "max_wal_size": "8GB",
    "min_wal_size": "1GB",
}
"""The settings of a run, beside `shared_buffers`. All other settings are PostgreSQL's defaults. The durability settings
are defaults too; they are repeated here for the reader.
"""


class PostgresServer(NamedTuple):
    """One that runs; `socket_directory` and `port` are where it listens, and nowhere else."""

    socket_directory: Path
    port: int
    user: str
    version: str
    postmaster: int
    """Its process id; all others of the server are its children."""
    settings: dict[str, str]

    def connection(self) -> dict[str, Any]:
        """Keyword arguments of `asyncpg.connect`."""
        return {"host": str(self.socket_directory), "port": self.port, "user": self.user, "database": DATABASE}


def find_binaries() -> Path:
    """The directory of `initdb` and `pg_ctl`, of the newest version there is. Raises `ConfigurationError`."""
    versions = DEBIAN.glob("*/bin/initdb") if DEBIAN.is_dir() else ()
    found = sorted(versions, key=lambda path: _version_of(path.parts[-3]), reverse=True)
    on_path = shutil.which("initdb")
    if not found and on_path is None:
        raise ConfigurationError(
            f"there is no PostgreSQL on this machine: initdb is neither in {DEBIAN}/*/bin nor on PATH. "
            "Install it (on Debian and Ubuntu: apt install postgresql)"
        )
    return found[0].parent if found else Path(str(on_path)).resolve().parent


def _version_of(directory: str) -> tuple[int, ...]:
    return tuple(int(number) for number in re.findall(r"\d+", directory))


@contextmanager
def postgres_server(more: dict[str, str] | None = None) -> Iterator[PostgresServer]:
    """A server with an empty database, for as long as the block lasts; `more` are settings to add.

    Raises `ConfigurationError` without PostgreSQL, or with a setting that it refuses.
    """
    binaries = find_binaries()
    owner = _owner()
    directory = Path(tempfile.mkdtemp(prefix="styx-postgres-"))
    try:
        if os.geteuid() == 0:
            os.chown(directory, owner.pw_uid, owner.pw_gid)
        run = _Commands(binaries, owner, directory)
        settings = {**SETTINGS, "shared_buffers": f"{shared_buffers_mib(_memory_bytes())}MB"} | (more or {})
        port = free_port()
        run("initdb", "-D", "data", "-U", DATABASE, "-A", "trust", "-E", "UTF8", "--locale=C", "--data-checksums")
        with (directory / "data" / "postgresql.conf").open("a", encoding="utf-8") as file:
            file.write(configuration(settings, port, directory))
        try:
            run("pg_ctl", "start", "-w", "-s", "-D", "data", "-l", "log", "-t", str(START_SECONDS_MAX))
            postmaster = int((directory / "data/postmaster.pid").read_text("utf-8").split("\n")[0])
            version = run("postgres", "--version").strip()
            yield PostgresServer(directory, port, DATABASE, version, postmaster, settings)
        finally:
            if (directory / "data/postmaster.pid").exists():
                run("pg_ctl", "stop", "-w", "-s", "-D", "data", "-m", "fast", "-t", str(STOP_SECONDS_MAX))
    finally:
        shutil.rmtree(directory, ignore_errors=True)


def configuration(settings: dict[str, str], port: int, socket_directory: Path) -> str:
    """Lines for `postgresql.conf`: the settings, and where it listens, which is a socket of this machine only."""
    where = {"listen_addresses": "", "port": str(port), "unix_socket_directories": str(socket_directory)}
    return "".join(f"{name} = '{_quoted(value)}'\n" for name, value in (settings | where).items())


def _quoted(value: str) -> str:
    return value.replace("\\", "\\\\").replace("'", "''")


def shared_buffers_mib(memory_bytes: int) -> int:
    """A quarter of the memory, within a limit."""
    return min(int(memory_bytes * SHARED_BUFFERS_SHARE) >> 20, SHARED_BUFFERS_MIB_MAX)


def _memory_bytes() -> int:
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def _owner() -> pwd.struct_passwd:
    if os.geteuid() != 0:
        return pwd.getpwuid(os.geteuid())
    for name in USERS:
        try:
            return pwd.getpwnam(name)
        except KeyError:
            continue
    raise ConfigurationError(f"PostgreSQL refuses to run as root, and there is no user {' or '.join(USERS)}")


class _Commands:
    """PostgreSQL's programs, run in `directory` as its owner."""

    def __init__(self, binaries: Path, owner: pwd.struct_passwd, directory: Path) -> None:
        self._binaries = binaries
        self._directory = directory
        as_owner: dict[str, Any] = {"user": owner.pw_uid, "group": owner.pw_gid, "extra_groups": []}
        self._as_owner = as_owner if os.geteuid() == 0 else {}

    def __call__(self, program: str, *arguments: str) -> str:
        """What it said. Raises `ConfigurationError` with it if it failed."""
        # Into a file, not a pipe: the server would hold the pipe open after `pg_ctl` has ended.
        with tempfile.TemporaryFile() as said:
            done = subprocess.run(
                [self._binaries / program, *arguments],
                check=False,
                cwd=self._directory,
                stdin=subprocess.DEVNULL,
                stdout=said,
                stderr=subprocess.STDOUT,
                **self._as_owner,
            )
            said.seek(0)
            text = said.read().decode("utf-8", "replace")
        if done.returncode:
            log = self._directory / "log"
            tail = log.read_text("utf-8", "replace")[-2000:] if log.exists() else ""
            raise ConfigurationError(f"{program} failed: {text.strip()}\n{tail}".strip())
        return text
