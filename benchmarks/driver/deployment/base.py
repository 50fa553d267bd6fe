"""A deployment as the driver sees it: ways in, processes to account, where doubled replies would show. Data only."""

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
    """Something that runs, for as long as the context that gave it.

    `facts` describe it in results. `open_client` is for loading and auditing. `make_target` is for client processes;
    None if the deployment lives in this process, where `target_here` is the only target. `pids` and `urls` are by
    role; `own` is what lives in this process. `replies`: None where a second reply to a request has no place.
    `workers`: None if they cannot be killed and started.
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
