"""How many calls for later wait in a cluster under test, by the metrics of its workers."""

from __future__ import annotations

from typing import Final

from proof.cluster.cluster import ClusterUnderTest
from styx.cli.facts_client import fetch

_METRIC: Final = "styx_given_for_later "


def given_for_later(cluster: ClusterUnderTest) -> int | None:
    """The calls that wait, by the metrics of the workers; None if one does not answer. Blocks."""
    total = 0
    for place, worker in enumerate(cluster.workers):
        if worker is not None:
            try:
                _, page = fetch(f"http://127.0.0.1:{cluster.worker_http_ports[place]}/metrics")
            except OSError:
                return None
            lines = page.decode().splitlines()
            total += sum(int(float(line.split()[-1])) for line in lines if line.startswith(_METRIC))
    return total
