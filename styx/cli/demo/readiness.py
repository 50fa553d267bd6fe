"""The message of the engine process to its parent when it serves: one line of JSON."""

from __future__ import annotations

import msgspec

from styx.cli.engine_facts import Start


class Readiness(msgspec.Struct):
    """Where it serves, and how the engine started."""

    url: str
    start: Start
