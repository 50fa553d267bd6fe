"""The phases of a deployment, as the coordinator sees it."""

from __future__ import annotations

from enum import Enum


class Phase(Enum):
    """Where the deployment is."""

    WAITING = "too few workers, or the metadata is not read yet"
    FENCING = "a new generation's marker is being written"
    LOADING = "workers load their slots"
    RUNNING = "epochs run, first those to replay"
    REFUSED = "the data is damaged; nothing will run"
    STOPPED = "the last snapshot of an orderly stop is stored; nothing will run"
