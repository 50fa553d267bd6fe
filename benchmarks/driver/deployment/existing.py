"""An existing deployment, reached by its brokers or by a gateway. The driver neither starts nor stops it. Processes are
accounted if they are on this machine and the driver can find them: those of a `styx up` in this directory, those that
listen on the given address, and those named by the user.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from urllib.parse import urlsplit

from benchmarks.driver.deployment.base import Deployment
from benchmarks.driver.deployment.replies import RepliesTopic
from benchmarks.driver.probe import Pids, Urls
from benchmarks.driver.processes import Listener, with_children
from benchmarks.driver.styx_target import HttpTargets, KafkaTargets
from benchmarks.driver.target import TargetFactory
from styx.cli.run_directory import local_cluster
from styx.client.base import Client
from styx.client.connect import connect
from styx.client.credential import from_environment
from styx.errors import ConfigurationError
from styx.model.app import App

_LOCAL = frozenset({"127.0.0.1", "localhost", "::1"})


def existing(
    url: str,
    app: App,
    app_name: str,
    named_pids: Mapping[str, Sequence[int]],
    named_urls: Mapping[str, Sequence[str]],
) -> Deployment:
    """The deployment at kafka://HOST:PORT or http://HOST:PORT. `app_name` is the app's name there. Raises
    `ConfigurationError` for another URL.
    """
    parts = urlsplit(url)
    if parts.scheme not in ("kafka", "http", "https"):
        raise ConfigurationError(f"--on {url}: give embedded, cluster, kafka://HOST:PORT or http://HOST:PORT")
    through_kafka = parts.scheme == "kafka"
    listener = _listener("broker" if through_kafka else "gateway", url)

    def open_client() -> AbstractAsyncContextManager[Client]:
        if through_kafka:
            return connect(url, App(app_name, app.operators.values(), events=app.events.values()))
        return connect(url, **from_environment(url))

    def pids() -> Mapping[str, Sequence[int]]:
        found = {role: [pid for one in given for pid in with_children(one)] for role, given in named_pids.items()}
        for role, more in (*_of_styx_up().items(), *listener().items()):
            found.setdefault(role, list(more))
        return found

    make_target: TargetFactory = KafkaTargets(url, app_name) if through_kafka else HttpTargets(url)
    return Deployment(
        facts={"kind": "existing", "through": parts.scheme},
        open_client=open_client,
        make_target=make_target,
        pids=pids,
        urls=_urls(named_urls),
        replies=RepliesTopic(url, app_name) if through_kafka else None,
    )


def role_of(name: str) -> str:
    """The role of a process that `styx up` calls `name`: `worker-2` is a worker."""
    return re.sub(r"[-\d]+\Z", "", name)


def _of_styx_up() -> dict[str, list[int]]:
    cluster = local_cluster()
    roles: dict[str, list[int]] = {}
    for name, pid in cluster.pids.items() if cluster is not None else ():
        roles.setdefault(role_of(name), []).append(pid)
    return roles


def _urls(named: Mapping[str, Sequence[str]]) -> Urls:
    cluster = local_cluster()
    found: dict[str, Sequence[str]] = {}
    if cluster is not None:
        found = {"coordinator": [cluster.facts_url], "gateway": cluster.gateway_urls}
    return lambda: found | dict(named)


def _listener(role: str, url: str) -> Pids:
    parts = urlsplit(url.partition(",")[0])
    if parts.hostname not in _LOCAL or parts.port is None:
        return dict
    listener = Listener(parts.port)
    return lambda: {role: listener.pids()} if listener.pids() else {}
