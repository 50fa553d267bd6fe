"""docs/metrics.md as tests read it: which metrics each process is said to show, and of which type."""

from __future__ import annotations

import re
from typing import Final

from prometheus_client.parser import text_string_to_metric_families

from tests.docs.snippets import ROOT

_SECTION: Final = re.compile(r"^## (.+)$", re.MULTILINE)
_ROW: Final = re.compile(r"^\| `((?:styx|process)_\w+)` \| (counter|gauge|histogram) \|", re.MULTILINE)


def documented(*sections: str) -> dict[str, str]:
    """Type by name, from the tables below these headings."""
    text = (ROOT / "docs/metrics.md").read_text("utf-8")
    heading, *parts = _SECTION.split(text)[1:]
    by_section = dict(zip([heading, *parts[1::2]], parts[0::2], strict=True))
    return {name: kind for section in sections for name, kind in _ROW.findall(by_section[section])}


def shown(text: str) -> dict[str, str]:
    """Type by name, from what a process shows at /metrics."""
    return {
        family.name + ("_total" if family.type == "counter" else ""): family.type
        for family in text_string_to_metric_families(text)
    }


def values(text: str) -> dict[str, float]:
    """Value by name and labels, as they stand in the text."""
    samples = [sample for family in text_string_to_metric_families(text) for sample in family.samples]
    return {
        sample.name + "".join(f",{label}={value}" for label, value in sorted(sample.labels.items())): sample.value
        for sample in samples
    }
