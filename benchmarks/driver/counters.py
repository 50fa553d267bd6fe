"""The metrics of a deployment's processes, fetched from `/metrics` before and after a window.

docs/metrics.md describes them. A counter is given as its growth, and so are the sum and count of a histogram. A gauge
is given as its value at the end. Buckets of histograms are left out. Values are summed over the processes of a role.
"""

from __future__ import annotations

import math
import os
import re
import urllib.request
from collections.abc import Iterable, Mapping
from typing import Final

from prometheus_client.parser import text_string_to_metric_families

FETCH_SECONDS_MAX: Final = 5.0
_GROWS: Final = re.compile(r"_(total|sum|count)(\{|\Z)")

Scrape = dict[str, float]
"""Values by name with labels: `styx_peer_bytes_total{direction=sent}`."""


def parse(text: str) -> Scrape:
    """Reads Prometheus' text format. Values that JSON cannot hold are left out: NaN (unknown) and infinity
    (unlimited).
    """
    values: Scrape = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            if sample.name.endswith(("_bucket", "_created")) or not math.isfinite(sample.value):
                continue
            labels = ",".join(f"{name}={value}" for name, value in sorted(sample.labels.items()))
            values[f"{sample.name}{{{labels}}}" if labels else sample.name] = sample.value
    return values


def fetch(urls: Iterable[str]) -> dict[str, Scrape]:
    """The metrics by URL; blocks. A process that does not answer is left out, because a fault may have ended it. The
    token is `STYX_FACTS_TOKEN`, if it is set.
    """
    scrapes: dict[str, Scrape] = {}
    token = os.environ.get("STYX_FACTS_TOKEN")
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    for url in urls:
        try:
            asked = urllib.request.Request(f"{url.rstrip('/')}/metrics", headers=headers)
            with urllib.request.urlopen(asked, timeout=FETCH_SECONDS_MAX) as answer:
                scrapes[url] = parse(answer.read().decode())
        except (OSError, ValueError):
            continue
    return scrapes


def growth(
    urls: Mapping[str, Iterable[str]], before: Mapping[str, Scrape], after: Mapping[str, Scrape]
) -> dict[str, Scrape]:
    """By role: the growth of each counter between two fetches, and each gauge at the second fetch. A process that
    started in between counts from zero.
    """
    roles: dict[str, Scrape] = {}
    for role, of_role in urls.items():
        totals: Scrape = {}
        for url in of_role:
            started = before.get(url, {})
            for name, value in after.get(url, {}).items():
                grown = value
                if _GROWS.search(name):
                    grown -= started.get(name, 0.0)
                    if grown < 0:
                        grown = value
                totals[name] = totals.get(name, 0.0) + grown
        if totals:
            roles[role] = totals
    return roles
