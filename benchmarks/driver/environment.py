"""The place of a measurement: machine, system, interpreter, versions. The names of the machine and its user are left
out.
"""

from __future__ import annotations

import os
import platform
import subprocess
import sys
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Final

import msgspec

from styx.native.form import FORM, name

_PACKAGES: Final = ("msgspec", "msgpack", "uvloop", "aiokafka", "aiohttp", "minio", "asyncpg")
_GIT_SECONDS_MAX: Final = 5.0


class Environment(msgspec.Struct, frozen=True, kw_only=True):
    """`interpreter` ends with the engine's form. `processors` counts those that this process may use. `commit` ends
    with `+` if files differ from it, and is empty if unknown. `load_average` is that of the minute before the
    measurement. `taken_at` is the time of the measurement, in UTC, to the second.
    """

    interpreter: str
    processor: str
    processors: int
    memory_bytes: int
    kernel: str
    load_average: float
    versions: dict[str, str]
    commit: str
    taken_at: str = ""


def environment() -> Environment:
    """Of this process, now."""
    return Environment(
        interpreter=f"{platform.python_implementation()} {platform.python_version()}, {name(FORM)}",
        processor=_processor(),
        processors=processors(),
        memory_bytes=os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"),
        kernel=f"{platform.system()} {platform.release()}",
        load_average=os.getloadavg()[0],
        versions=_versions(),
        commit=_commit(),
        taken_at=datetime.now(UTC).isoformat(timespec="seconds"),
    )


def processors() -> int:
    """Those that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _versions() -> dict[str, str]:
    versions = {}
    for package in _PACKAGES:
        try:
            versions[package] = version(package)
        except PackageNotFoundError:
            continue
    return versions


def _processor() -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text("utf-8").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine() or sys.platform


def _commit() -> str:
    root = Path(__file__).parents[2]
    try:
        commit = _git(root, "rev-parse", "--short=12", "HEAD")
        return commit + ("+" if _git(root, "status", "--porcelain", "--untracked-files=no") else "")
    except (OSError, subprocess.SubprocessError):
        return ""


def _git(root: Path, *words: str) -> str:
    done = subprocess.run(
        ["git", *words], cwd=root, check=True, capture_output=True, text=True, timeout=_GIT_SECONDS_MAX
    )
    return done.stdout.strip()
