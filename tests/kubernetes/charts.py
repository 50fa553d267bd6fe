"""The charts of `helm/` as tests see them: rendered by helm into plain data, once for each set of values."""

from __future__ import annotations

import subprocess
from functools import cache
from pathlib import Path
from typing import Any, Final

import yaml

from styx.testing.patience import PATIENCE_SECONDS

CHARTS: Final = Path(__file__).parents[2] / "helm"
NAMES: Final = ("kafka", "minio", "styx", "stack")
RELEASE: Final = "r1"
NAMESPACE: Final = "somewhere"
RENDER_SECONDS_MAX: Final = PATIENCE_SECONDS

Manifest = dict[str, Any]


class RenderFailed(Exception):
    """helm refused; the text is what it said."""


def values_files(chart: str) -> list[Path]:
    """The documented combinations of values: one file each."""
    return sorted((CHARTS / chart / "ci").glob("*.yaml"))


@cache
def rendered(helm: Path, chart: str, *arguments: str) -> tuple[Manifest, ...]:
    """What `helm template` makes of a chart, in its order, tests included. Raises `RenderFailed`."""
    text = run_helm(helm, "template", RELEASE, str(CHARTS / chart), "--namespace", NAMESPACE, *arguments)
    return tuple(document for document in yaml.load_all(text, _Loader) if document)


def run_helm(helm: Path, *words: str) -> str:
    """Its standard output. Raises `RenderFailed`."""
    done = subprocess.run(
        [helm, *words],
        check=False,
        capture_output=True,
        text=True,
        timeout=RENDER_SECONDS_MAX,
        stdin=subprocess.DEVNULL,
    )
    if done.returncode:
        raise RenderFailed(f"{done.stdout}{done.stderr}")
    return done.stdout


class _Loader(yaml.SafeLoader):
    """A key that comes twice is an error: Kubernetes would take one of them without a word."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        seen: set[Any] = set()
        for key_node, _ in node.value:
            key = self.construct_object(key_node, deep=True)
            if key in seen:
                raise RenderFailed(f"the key {key!r} comes twice{key_node.start_mark}")
            seen.add(key)
        return super().construct_mapping(node, deep)
