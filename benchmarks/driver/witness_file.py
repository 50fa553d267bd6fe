"""The file that `run --witness` writes and `audit --witness` reads: the witnesses of one run's clients.

The file names the workload, because another workload's audit cannot use it.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

from styx.errors import ConfigurationError


class WitnessFile(msgspec.Struct, kw_only=True):
    """`clients` are the witnesses of all client processes."""

    workload: str
    clients: list[Any]


def write_witnesses(path: Path, workload: str, clients: list[Any]) -> None:
    """Raises `OSError`."""
    path.write_bytes(msgspec.msgpack.encode(WitnessFile(workload=workload, clients=clients)))


def read_witnesses(path: Path, workload: str) -> list[Any]:
    """Reads the witnesses of a run of this workload. Raises `ConfigurationError`."""
    try:
        file = msgspec.msgpack.decode(path.read_bytes(), type=WitnessFile)
    except OSError as error:
        raise ConfigurationError(f"{path} cannot be read: {error.strerror}") from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise ConfigurationError(f"{path} is not what `run --witness` writes: {error}") from None
    if file.workload != workload:
        raise ConfigurationError(f"{path} is of a run of {file.workload}, not of {workload}")
    return file.clients
