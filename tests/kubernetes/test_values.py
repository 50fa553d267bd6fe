"""Values are what the chart's reader sees: each has a comment, stands in the README and in the schema, and nothing that
is not there is let pass.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from tests.kubernetes.charts import CHARTS, NAMES, RenderFailed, rendered

SUBCHARTS: Final = {"stack": ("kafka", "minio", "styx")}
"""Whose values a chart passes on: those are described there."""

charts = pytest.mark.parametrize("chart", NAMES)


WHOLE: Final = (
    "resources",
    "securityContext",
    "podSecurityContext",
    "topologySpreadConstraints",
    "requests",
    "limits",
    "labels",
    "startup",
    "readiness",
    "liveness",
)
"""Maps of Kubernetes' own, and of its probes, which are described as one value."""


def _leaves(node: yaml.Node, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], int]]:
    """(path, line) of each value; a list, a map without entries, or one of Kubernetes' own is one."""
    if not isinstance(node, yaml.MappingNode) or (path and not node.value):
        return
    for key, value in node.value:
        inner = (*path, key.value)
        if isinstance(value, yaml.MappingNode) and value.value and key.value not in WHOLE:
            yield from _leaves(value, inner)
        else:
            yield inner, key.start_mark.line


def _values(chart: str) -> list[tuple[tuple[str, ...], int]]:
    node = yaml.compose((CHARTS / chart / "values.yaml").read_text(), Loader=yaml.SafeLoader)
    assert node is not None
    return list(_leaves(node))


def _schema(chart: str) -> dict[str, Any]:
    schema: dict[str, Any] = json.loads((CHARTS / chart / "values.schema.json").read_text())
    return schema


def _resolved(schema: dict[str, Any], root: dict[str, Any]) -> dict[str, Any]:
    while "$ref" in schema:
        found: Any = root
        for part in schema["$ref"].removeprefix("#/").split("/"):
            found = found[part]
        schema = {**found, **{key: value for key, value in schema.items() if key != "$ref"}}
    return schema


def _objects(schema: dict[str, Any], root: dict[str, Any], path: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    schema = _resolved(schema, root)
    if "properties" in schema:
        yield path, schema
    for name, inner in schema.get("properties", {}).items():
        yield from _objects(inner, root, f"{path}.{name}".lstrip("."))


@charts
def test_each_value_has_a_comment(chart: str) -> None:
    lines = (CHARTS / chart / "values.yaml").read_text().splitlines()
    bare = [".".join(path) for path, line in _values(chart) if not lines[line - 1].lstrip().startswith("#")]
    assert bare == []


@charts
def test_each_value_is_in_the_readme(chart: str) -> None:
    readme = (CHARTS / chart / "README.md").read_text()
    own = [path for path, _ in _values(chart) if path[0] not in SUBCHARTS.get(chart, ())]
    assert [".".join(path) for path in own if f"`{'.'.join(path)}`" not in readme] == []


@charts
def test_the_schema_knows_each_value_and_no_other(chart: str) -> None:
    root = _schema(chart)
    for path, _ in _values(chart):
        if path[0] in SUBCHARTS.get(chart, ()):
            continue
        schema = _resolved(root, root)
        for name in path:
            if "properties" not in schema:
                typed = isinstance(schema.get("additionalProperties"), dict) or "patternProperties" in schema
                assert typed, f"{'.'.join(path)}: the schema takes any map there"
                break
            assert name in schema["properties"], f"{'.'.join(path)} is not in the schema"
            schema = _resolved(schema["properties"][name], root)
    leaves = {path for path, _ in _values(chart)}
    known = {path[:length] for path in leaves for length in range(1, len(path) + 1)}
    for path_text, schema in _objects(root, root):
        above = tuple(path_text.split(".")) if path_text else ()
        if above and above[0] in SUBCHARTS.get(chart, ()):
            continue
        for name in schema["properties"]:
            inner = (*above, name)
            within = any(inner[:length] in leaves for length in range(1, len(inner)))
            assert inner in known or within or name == "global", f"{'.'.join(inner)} is in no values.yaml"


@charts
def test_the_schema_is_closed(chart: str) -> None:
    root = _schema(chart)
    open_ones = [
        path or "(top)"
        for path, schema in _objects(root, root)
        if schema.get("additionalProperties", True) is True and path not in SUBCHARTS.get(chart, ())
    ]
    assert open_ones == []


@pytest.mark.slow
@charts
def test_an_unknown_value_is_refused(helm: Path, chart: str) -> None:
    with pytest.raises(RenderFailed, match="nonsense"):
        rendered(helm, chart, "--set", "nonsense=1")
    for path, schema in _objects(_schema(chart), _schema(chart)):
        if path and schema.get("additionalProperties") is False:
            with pytest.raises(RenderFailed, match="nonsense"):
                rendered(helm, chart, "--set", f"{path}.nonsense=1")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("chart", "setting"),
    [
        ("styx", "worker.replicas=two"),
        ("styx", "worker.replicas=-1"),
        ("styx", "worker.replicas=17"),
        ("styx", "coordinator.slots=0"),
        ("styx", "gateway.replicas=0"),
        ("styx", "image.pullPolicy=Sometimes"),
        ("styx", "app.module=no module"),
        ("styx", "benchmark.workload=tpch"),
        ("kafka", "replicas=2"),
        ("kafka", "persistence.enabled=maybe"),
        ("minio", "persistence.size=big"),
        ("stack", "kafka.enabled=maybe"),
        ("stack", "styx.worker.replicas=two"),
    ],
)
def test_a_wrong_value_is_refused(helm: Path, chart: str, setting: str) -> None:
    name = setting.partition("=")[0].rpartition(".")[2]
    with pytest.raises(RenderFailed, match=name):
        rendered(helm, chart, "--set", setting)
