"""Where pods are described in manifests, and what in them refers to what. Reads; judges nothing."""

from __future__ import annotations

import base64
from collections.abc import Iterable, Iterator
from typing import Any, Final, NamedTuple

from tests.kubernetes.charts import Manifest

SERVERS: Final = ("Deployment", "StatefulSet", "DaemonSet")


class Workload(NamedTuple):
    """Whatever makes pods: `where` is its kind and name, `pod` its pods' spec and `labels` their labels."""

    where: str
    kind: str
    manifest: Manifest
    labels: dict[str, str]
    pod: dict[str, Any]

    @property
    def replicas(self) -> int:
        """1 where nothing else is said."""
        return int(self.manifest["spec"].get("replicas", 1))

    def containers(self) -> Iterator[tuple[str, dict[str, Any]]]:
        """(where, container), those of the start included."""
        for container in [*self.pod.get("initContainers", []), *self.pod["containers"]]:
            yield f"{self.where}, container {container['name']}", container


def workloads(manifests: Iterable[Manifest]) -> list[Workload]:
    """All of them."""
    found = []
    for manifest in manifests:
        kind, spec = manifest["kind"], manifest.get("spec", {})
        if kind == "CronJob":
            spec = spec["jobTemplate"]["spec"]
        where = f"{kind}/{manifest['metadata']['name']}"
        if kind == "Pod":
            labels = manifest["metadata"].get("labels", {})
            found.append(Workload(where, kind, manifest, labels, spec))
        elif kind in (*SERVERS, "Job", "CronJob"):
            template = spec["template"]
            labels = template.get("metadata", {}).get("labels", {})
            found.append(Workload(where, kind, manifest, labels, template["spec"]))
    return found


def of_kind(manifests: Iterable[Manifest], *kinds: str) -> list[Manifest]:
    """Those of these kinds."""
    return [manifest for manifest in manifests if manifest["kind"] in kinds]


def selects(selector: dict[str, Any] | None, labels: dict[str, str]) -> bool:
    """Whether a label selector, or a Service's plain one, takes pods with these labels; one without terms takes all."""
    selector = selector or {}
    if not selector.keys() & {"matchLabels", "matchExpressions"}:
        selector = {"matchLabels": selector}
    wanted = selector.get("matchLabels") or {}
    terms = selector.get("matchExpressions") or []
    return all(labels.get(name) == value for name, value in wanted.items()) and all(
        _holds(each, labels) for each in terms
    )


def _holds(term: dict[str, Any], labels: dict[str, str]) -> bool:
    found = labels.get(term["key"])
    operators = {
        "In": found in term.get("values", ()),
        "NotIn": found not in term.get("values", ()),
        "Exists": found is not None,
        "DoesNotExist": found is None,
    }
    return operators[term["operator"]]


def secret_values(manifests: Iterable[Manifest]) -> set[str]:
    """Everything that Secrets hold."""
    values: set[str] = set()
    for manifest in of_kind(manifests, "Secret"):
        values |= {base64.b64decode(value).decode("utf-8", "replace") for value in manifest.get("data", {}).values()}
        values |= set(manifest.get("stringData", {}).values())
    return values


def strings(value: Any) -> Iterator[str]:
    """Every text in it, keys too."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for key, each in value.items():
            yield str(key)
            yield from strings(each)
    elif isinstance(value, list):
        for each in value:
            yield from strings(each)


def references(workload: Workload) -> Iterator[tuple[str, str, str | None]]:
    """(kind, name, key or None) of each ConfigMap and Secret that its pods cannot start without."""
    for volume in workload.pod.get("volumes", []):
        sources = [volume, *volume.get("projected", {}).get("sources", [])]
        for source in sources:
            yield from _of_source(source)
    for _, container in workload.containers():
        for variable in container.get("env", []):
            for field, kind in (("configMapKeyRef", "ConfigMap"), ("secretKeyRef", "Secret")):
                ref = variable.get("valueFrom", {}).get(field)
                if ref is not None and not ref.get("optional"):
                    yield kind, ref["name"], ref["key"]
        for source in container.get("envFrom", []):
            for field, kind in (("configMapRef", "ConfigMap"), ("secretRef", "Secret")):
                if field in source and not source[field].get("optional"):
                    yield kind, source[field]["name"], None


def _of_source(source: dict[str, Any]) -> Iterator[tuple[str, str, str | None]]:
    for field, kind, name_field in (("configMap", "ConfigMap", "name"), ("secret", "Secret", "secretName")):
        ref = source.get(field)
        if ref is None or ref.get("optional"):
            continue
        name = ref.get(name_field) or ref["name"]
        items = ref.get("items")
        if items is None:
            yield kind, name, None
        for item in items or ():
            yield kind, name, item["key"]
