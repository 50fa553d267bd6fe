"""Runs adya, an independent checker of transaction histories (crates.io), as a program.

adya infers the order of each key's versions, builds the graph of dependencies between transactions, with real time in
it, and searches the graph for cycles that a strictly serializable system cannot have.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path
from typing import Final, NamedTuple

import msgspec

from proof.judge.recorded import Recorded, files_of
from styx.errors import ConfigurationError

VERSION: Final = "0.1.0"
CYCLE_SEARCH_MS: Final = 60_000
"""Limit on the search of each strongly connected part of the graph. With adya's default a large history is
`unknown`.
"""
CHECK_SECONDS_MAX: Final = 600
EXPLANATIONS_MAX: Final = 2
"""Limit on the explained anomalies of each kind."""

_NOT_JUDGED: Final = ("unexpected-txn-micro-op-types", "duplicate-appends", "duplicate-writes")
"""Anomalies with which this version of adya stops judging a history. Unless an option says that they count, it then
calls the history valid."""
_VERDICTS: Final = {0: True, 1: False, 2: None}


class Verdict(NamedTuple):
    """adya's verdict. `valid` is None if adya could not decide. `anomalies` are its proofs by kind."""

    valid: bool | None
    anomalies: dict[str, list[str]]


class _Anomaly(msgspec.Struct):
    explanation: str = ""


class _Report(msgspec.Struct):
    anomalies: dict[str, list[_Anomaly]]


def find_adya() -> Path:
    """Finds the program on the path or in the folder of `scripts/services`. Raises `ConfigurationError`."""
    folder = Path(os.environ.get("STYX_SERVICES") or Path.home() / ".cache/styx-services")
    found = shutil.which("adya", path=os.pathsep.join([os.environ.get("PATH", ""), str(folder / "bin")]))
    if found is None:
        raise ConfigurationError(f"adya is missing. Install it: {' '.join(install_command(folder))}")
    return Path(found)


def install_command(folder: Path) -> list[str]:
    """The command that installs the program into `folder`/bin, without drivers of databases. It builds for a minute or
    a few.
    """
    return ["cargo", "install", "--locked", "--no-default-features", "--root", str(folder), f"adya@{VERSION}"]


def check(recorded: Recorded, folder: Path) -> Verdict:
    """adya's verdict on the history saved in `folder`. Raises `ConfigurationError` if it is missing or fails."""
    history, order = files_of(recorded.model, folder)
    command: list[str | Path] = [find_adya(), "check", "--json", "-m", recorded.model, "-c", "strict-serializable"]
    command += ["-a", ",".join(_NOT_JUDGED), "--cycle-search-timeout", str(CYCLE_SEARCH_MS), history]
    if recorded.model == "rw-register":
        # The content of lists shows their order. For registers the claimed order is given, unless transactions have
        # unknown outcomes.
        command += ["--linearizable-keys"] if recorded.count("info") else ["--transaction-order", order]
    done = subprocess.run(command, check=False, capture_output=True, timeout=CHECK_SECONDS_MAX)
    if done.returncode not in _VERDICTS:
        raise ConfigurationError(f"adya failed on {history}: {done.stderr.decode().strip()}")
    report = msgspec.json.decode(done.stdout, type=_Report)
    explained = {
        kind: [each.explanation for each in anomalies[:EXPLANATIONS_MAX]]
        for kind, anomalies in report.anomalies.items()
    }
    return Verdict(_VERDICTS[done.returncode], explained)
