"""Alerts and dashboards of the chart name only what there is: metrics, labels, their values, sections of the runbook.

What the alerts do is in `alerts.promtool.yaml`, which `promtool` runs where it is installed.
"""

from __future__ import annotations

import itertools
import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any, Final, NamedTuple

import pytest
import yaml
from prometheus_client.parser import text_string_to_metric_families

from tests.docs.snippets import ROOT
from tests.docs.test_references import anchors
from tests.kubernetes.promql import grouping_labels, kept_labels, parse, read_by, selectors
from tests.metrics.processes import audit_text, coordinator_text, gateway_text, ingest_text, replica_text, worker_text

FILES: Final = ROOT / "helm/styx/files"
DASHBOARDS: Final = sorted((FILES / "dashboards").glob("*.json"))
CASES: Final = ROOT / "tests/kubernetes/alerts.promtool.yaml"
RUNBOOK: Final = "docs/operations.md"
TARGET: Final = {"namespace", "pod", "job", "instance", "app_kubernetes_io_instance"}
"""Labels that a scrape adds, in Kubernetes and with the chart's monitors."""
OF_KUBERNETES: Final = {
    "kube_statefulset_replicas": {"namespace", "statefulset"},
    "kube_statefulset_status_replicas_ready": {"namespace", "statefulset"},
}
"""Metrics of kube-state-metrics, and their labels. Without it an alert that reads them is silent."""
ANY_VALUE: Final = {"status", "le"}
"""Labels whose values are not all shown by a process that has only just begun."""
PANELS: Final = {"row", "stat", "timeseries", "state-timeline"}
"""Kinds that Grafana has itself."""
SEVERITIES: Final = {"critical", "warning"}


class Known(NamedTuple):
    """A metric's type, and the values of each of its labels as a new process shows them."""

    kind: str
    labels: dict[str, set[str]]


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="module")
async def known(anyio_backend: str) -> dict[str, Known]:
    found: dict[str, Known] = {}
    texts = (worker_text(), coordinator_text(), gateway_text(), ingest_text(), audit_text(), replica_text())
    for family in itertools.chain.from_iterable(map(text_string_to_metric_families, texts)):
        for sample in family.samples:
            labels = found.setdefault(sample.name, Known(family.type, {})).labels
            for label, value in sample.labels.items():
                labels.setdefault(label, set()).add(value)
    found["styx_gateway_requests_total"] = Known("counter", {"status": set()})
    found["styx_dead_calls_kept"] = Known("gauge", {"operator": set()})
    found["styx_dead_calls_dropped_total"] = Known("counter", {"operator": set()})
    found.update({name: Known("gauge", {label: set() for label in own}) for name, own in OF_KUBERNETES.items()})
    return found


def rules() -> list[dict[str, Any]]:
    groups = yaml.safe_load((FILES / "alerts.yaml").read_text("utf-8"))["groups"]
    return [rule for group in groups for rule in group["rules"]]


def dashboard(path: Path) -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads(path.read_text("utf-8"))
    return loaded


def targets(path: Path) -> list[tuple[str, str]]:
    """(panel's title, expression) of a dashboard."""
    panels = dashboard(path)["panels"]
    return [(panel["title"], target["expr"]) for panel in panels for target in panel.get("targets", [])]


def check(text: str, known: dict[str, Known]) -> None:
    """The expression parses, and what it reads is there."""
    expression = parse(text)
    own: set[str] = set()
    for metric, matchers in selectors(expression):
        assert metric in known, f"no process shows {metric}"
        labels = known[metric].labels
        own |= labels.keys()
        for label, operator, value in matchers:
            if label in TARGET:
                continue
            assert label in labels, f"{metric} has no label {label}"
            # A pattern of alternatives that are all wrong would select nothing, or with !~ everything, for ever.
            values = value.split("|") if "~" in operator else [value]
            if label not in ANY_VALUE and metric not in OF_KUBERNETES:
                assert set(values) <= labels[label], f"{metric} has no {label} {value}"
    assert grouping_labels(text) <= own | TARGET
    counted = read_by(expression, ("rate", "increase", "irate"))
    assert {metric for metric in counted if known[metric].kind == "gauge"} == set()
    # All that a counter has counted counts only if it is new: then increase() does not see what it began with.
    plain = {metric for metric, _ in selectors(expression)} - counted - read_by(expression, ("last_over_time",))
    assert {metric for metric in plain if known[metric].kind in ("counter", "histogram")} == set()


@pytest.mark.anyio
@pytest.mark.parametrize("rule", rules(), ids=lambda rule: rule["alert"])
async def test_an_alert_reads_what_there_is(rule: dict[str, Any], known: dict[str, Known]) -> None:
    check(rule["expr"], known)


@pytest.mark.anyio
@pytest.mark.parametrize("path", DASHBOARDS, ids=lambda path: path.stem)
async def test_a_dashboard_reads_what_there_is(path: Path, known: dict[str, Known]) -> None:
    for title, expression in targets(path):
        try:
            check(expression, known)
        except (AssertionError, ValueError) as error:
            raise AssertionError(f"{title}: {expression}: {error}") from error


@pytest.mark.anyio
async def test_what_is_not_there_is_found(known: dict[str, Known]) -> None:
    for wrong in (
        "styx_nothing == 0",
        'styx_phase{fase="running"}',
        'styx_phase{phase="runing"}',
        'styx_recoveries_total{cause!~"start|plan"}',
        "sum by (cause) (styx_phase)",
        "rate(styx_backlog[5m])",
        "styx_epochs_total > 0",
        "rate(styx_epochs_total)",
        "sum by (phase (styx_phase)",
    ):
        with pytest.raises((AssertionError, ValueError)):
            check(wrong, known)


@pytest.mark.parametrize("rule", rules(), ids=lambda rule: rule["alert"])
def test_an_alert_says_what_and_where_to_read_on(rule: dict[str, Any]) -> None:
    assert rule.keys() <= {"alert", "expr", "for", "labels", "annotations"}
    assert rule["labels"].keys() == {"severity"}
    assert rule["labels"]["severity"] in SEVERITIES
    texts = rule["annotations"]
    assert texts.keys() == {"summary", "description", "runbook"}
    assert texts["runbook"] == f"{RUNBOOK}#{rule['alert'].lower()}"
    kept = kept_labels(parse(rule["expr"]))
    named = set(re.findall(r"\$labels\.(\w+)", texts["description"]))
    allowed = TARGET | {"statefulset"} if kept is None else kept
    assert named <= allowed, "it names labels that the expression does not keep"


def test_each_alert_has_a_section_and_each_section_an_alert() -> None:
    names = [rule["alert"] for rule in rules()]
    assert len(set(names)) == len(names)
    sections = {anchor for anchor in anchors(ROOT / RUNBOOK) if re.fullmatch(r"styx[a-z]+", anchor)}
    assert sections == {name.lower() for name in names}


def test_dashboards_stand_for_themselves() -> None:
    loaded = [dashboard(path) for path in DASHBOARDS]
    assert [each["uid"] for each in loaded] == ["styx-gateway", "styx-overview", "styx-workers"]
    for each in loaded:
        assert [variable["name"] for variable in each["templating"]["list"]] == ["datasource", "namespace", "release"]
        panels = each["panels"]
        assert {panel["type"] for panel in panels} <= PANELS
        assert len({panel["id"] for panel in panels}) == len(panels)
        places = [panel["gridPos"] for panel in panels]
        cells = [
            (x, y)
            for place in places
            for x in range(place["x"], place["x"] + place["w"])
            for y in range(place["y"], place["y"] + place["h"])
        ]
        assert len(set(cells)) == len(cells), "panels overlap"
        assert max(x for x, _ in cells) < 24
        sources = [panel["datasource"]["uid"] for panel in panels if panel["type"] != "row"]
        assert set(sources) == {"${datasource}"}


@pytest.mark.parametrize("path", DASHBOARDS, ids=lambda path: path.stem)
def test_a_dashboard_shows_one_deployment(path: Path) -> None:
    for title, expression in targets(path):
        # What only says which targets are meant needs no filter of its own.
        picking = re.findall(r"on \(namespace, job, instance\) (\w+)", expression)
        for metric, matchers in selectors(parse(expression)):
            names = {label for label, _, _ in matchers}
            filtered = {"namespace", "app_kubernetes_io_instance"} <= names
            assert filtered or metric in picking, f"{title}: {metric} of every deployment"


def test_each_alert_is_expected_to_fire_somewhere() -> None:
    cases = yaml.safe_load(CASES.read_text("utf-8"))["tests"]
    fired = {each["alertname"] for case in cases for each in case.get("alert_rule_test", []) if each["exp_alerts"]}
    for case in cases:
        samples = [each["labels"] for test in case.get("promql_expr_test", []) for each in test["exp_samples"]]
        fired |= set(re.findall(r'alertname="(\w+)"', " ".join(samples)))
    assert fired == {rule["alert"] for rule in rules()}


def test_a_deployment_at_work_shows_what_each_alert_reads() -> None:
    """So each of them is seen to be silent there."""
    quiet, *_ = yaml.safe_load(CASES.read_text("utf-8"))["tests"]
    shown = {each["series"].partition("{")[0] for each in quiet["input_series"]}
    read = {metric for rule in rules() for metric, _ in selectors(parse(rule["expr"]))}
    assert read - shown - OF_KUBERNETES.keys() == set()


@pytest.mark.skipif(shutil.which("promtool") is None, reason="promtool is not installed: Debian's package prometheus")
def test_alerts_fire_when_they_should() -> None:
    done = subprocess.run(["promtool", "test", "rules", str(CASES)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
