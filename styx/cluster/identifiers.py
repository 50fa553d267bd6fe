"""Names that processes of one deployment agree on: producers that fence each other."""

from __future__ import annotations


def coordinator_producer(app: str) -> str:
    """The transactional id of whoever coordinates: starting one ends every older coordinator's appends."""
    return f"styx.{app}.coordinator"


def worker_producer(app: str, place: int) -> str:
    """The transactional id of the member at this place among a generation's members, in ascending order."""
    return f"styx.{app}.worker.{place}"
