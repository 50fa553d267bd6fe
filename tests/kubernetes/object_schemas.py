"""Kubernetes' own schemas of its objects, for several versions, without a network: an unknown field is an error.

Objects of the Prometheus operator are not Kubernetes' own; of them only the frame is checked.
"""

from __future__ import annotations

import json
import re
from functools import cache
from importlib.resources import files
from typing import Any, Final

from jsonschema import Draft202012Validator
from referencing import Registry, Resource

from tests.kubernetes.charts import Manifest

VERSIONS: Final = ("1.34.0", "1.35.0", "1.36.0")
FOREIGN: Final = {"monitoring.coreos.com/v1": ("ServiceMonitor", "PodMonitor", "PrometheusRule")}


def violations(manifest: Manifest, version: str) -> list[str]:
    """What a server of this version would refuse about the object."""
    where = f"{manifest.get('kind')}/{manifest.get('metadata', {}).get('name')}"
    if manifest.get("kind") in FOREIGN.get(manifest.get("apiVersion", ""), ()):
        return [] if {"metadata", "spec"} <= manifest.keys() else [f"{where}: it lacks metadata or spec"]
    validator = _validator(manifest["apiVersion"], manifest["kind"], version)
    if validator is None:
        return [f"{where}: Kubernetes {version} has no {manifest['apiVersion']} {manifest['kind']}"]
    return [
        f"{where}: {'.'.join(map(str, error.absolute_path))}: {error.message[:300]}"
        for error in validator.iter_errors(manifest)
    ]


@cache
def _validator(api_version: str, kind: str, version: str) -> Draft202012Validator | None:
    short = re.sub(r"^([^./]*)(?:\.[^/]*)?/", r"\1-", api_version)
    schema = _read(version, f"{kind.lower()}-{short}.json")
    if schema is None:
        return None
    return Draft202012Validator(schema, registry=Resource.from_contents(schema) @ _definitions(version))


@cache
def _definitions(version: str) -> Registry[Any]:
    definitions = _read(version, "_definitions.json")
    assert definitions is not None
    empty: Registry[Any] = Registry()
    return Resource.from_contents(definitions) @ empty


def _read(version: str, name: str) -> dict[str, Any] | None:
    path = files("kubernetes_validate").joinpath(f"kubernetes-json-schema/v{version}-local-strict/{name}")
    found: dict[str, Any] | None = json.loads(path.read_text()) if path.is_file() else None
    return found
