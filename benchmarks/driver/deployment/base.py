"""A deployment as the driver sees it: its clients, its processes, and the replies in which doubles are searched."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Any

from benchmarks.driver.deployment.replies import RepliesSeen
from benchmarks.driver.probe import Own, Pids, Urls
from benchmarks.driver.target import Target, TargetFactory
from benchmarks.driver.worker_death import Workers
from styx.client.base import Client


@dataclass(frozen=True, kw_only=True)
class Deployment:
    """A running deployment; it ends with the context that gave it. `facts` describe it in results. `open_client` is for
    loading and auditing. `make_target` is for client processes. It is None if the deployment is in this process; then
    `target_here` is the only target. `pids` and `urls` are by role, `own` is the part in this process. `replies` is
    None if a request cannot get a second reply. `workers` is None if workers cannot be killed and started.
    `replica` is the URL of a replica, empty if there is none.
    """

    facts: dict[str, Any]
    open_client: Callable[[], AbstractAsyncContextManager[Client]]
    pids: Pids
    urls: Urls = dict
    own: Own | None = None
    make_target: TargetFactory | None = None
    target_here: Callable[[float], Target] | None = None
    replies: RepliesSeen | None = None
    workers: Workers | None = None
    replica: str = ""
