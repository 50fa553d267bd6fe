"""The blocking embedded client: an engine in the caller's process, on a thread and an event loop of its own.

For programs without an event loop, such as Flask and Django. It has no logic about requests.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar

from styx.client.base import KeyLike, OperatorLike
from styx.client.embedded import EmbeddedClient, embedded
from styx.client.sync import SyncClient
from styx.embedded_engine.options import N_SLOTS_DEFAULT, SNAPSHOT_SECONDS_DEFAULT
from styx.model.app import App
from styx.model.limits import Limits

T = TypeVar("T")


def embedded_sync(
    app: App,
    data_dir: str | os.PathLike[str] | None = None,
    *,
    n_slots: int = N_SLOTS_DEFAULT,
    limits: Limits | None = None,
    snapshot_interval: float = SNAPSHOT_SECONDS_DEFAULT,
    keep_log: bool = False,
) -> SyncEmbeddedClient:
    """As `styx.embedded`, blocking and safe to share among threads: `with styx.embedded_sync(app) as client`.

    Or `open()` it where it is first needed, as a web server's process does; then it is closed when the process ends. A
    data directory has one engine, so it is one process that serves: of several, all but the first one raise
    `DataDirectoryInUse`.

    Raises `ConfigurationError` for options that are wrong. Entering raises what `styx.embedded` raises.
    """
    make = partial(
        embedded,
        app,
        data_dir,
        n_slots=n_slots,
        limits=limits,
        snapshot_interval=snapshot_interval,
        keep_log=keep_log,
    )
    make()  # a wrong option fails here rather than on the client's thread
    return SyncEmbeddedClient(make)


class SyncEmbeddedClient(SyncClient[EmbeddedClient]):
    """An `EmbeddedClient` for any thread."""

    def entity(self, operator: OperatorLike, key: KeyLike) -> Any:
        """As `EmbeddedClient.entity`."""
        return self._start(_on_loop(partial(self._client.entity, operator, key))).result()

    def state(self) -> dict[tuple[str, Any], Any]:
        """As `EmbeddedClient.state`."""
        return self._start(_on_loop(self._client.state)).result()

    def crash(self) -> None:
        """As `EmbeddedClient.crash`; close it all the same."""
        self._start(_on_loop(self._client.crash)).result()


async def _on_loop(function: Callable[[], T]) -> T:
    return function()
