"""What the processes of a cluster have counted, summed over those that were killed meanwhile.

A process counts from its start, so it must be asked before it is killed. An epoch that is replayed is counted again.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import Final

from proof.cluster.child import ChildProcess
from proof.cluster.cluster import ClusterUnderTest
from styx.cli.facts_client import fetch

COUNTED: Final = {
    "styx_lock_phase_transactions_total": "in conflict",
    "styx_carried_transactions_total": "carried",
    "styx_left_slot_transactions_total": "left their slot",
    "styx_patch_rounds_total": "rounds with patches",
    "styx_given_up_transactions_total": "given up by them",
    "styx_replayed_epochs_total": "epochs replayed",
}
"""Metrics of workers and coordinator, and how they are told to a person."""


class Counted:
    """The sums, so far as they were asked for."""

    def __init__(self) -> None:
        self._by_process: dict[str, Counter[str]] = {}

    def __str__(self) -> str:
        total = self.total
        return ", ".join(f"{total[metric]} {words}" for metric, words in COUNTED.items())

    @property
    def total(self) -> Counter[str]:
        """The sum of each metric of `COUNTED`."""
        return sum(self._by_process.values(), Counter())

    async def ask(self, cluster: ClusterUnderTest) -> None:
        """Asks all processes of the cluster that answer."""
        urls = zip(cluster.workers, cluster.worker_http_ports, strict=True)
        places = [(worker, f"http://127.0.0.1:{port}") for worker, port in urls]
        await asyncio.gather(*(self._ask(*place) for place in [*places, (cluster.coordinator, cluster.facts_url)]))

    async def _ask(self, process: ChildProcess | None, url: str) -> None:
        if process is None:
            return
        try:
            _, page = await asyncio.to_thread(fetch, f"{url}/metrics")
        except OSError:
            return
        self._by_process[process.name] = read_metrics(page.decode())


def read_metrics(page: str) -> Counter[str]:
    """The sum over all labels of each metric of `COUNTED` on a process's page."""
    found: Counter[str] = Counter()
    for line in page.splitlines():
        metric = line.partition(" ")[0].partition("{")[0]
        if metric in COUNTED:
            found[metric] += int(float(line.split()[-1]))
    return found
