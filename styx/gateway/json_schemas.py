"""The JSON schemas of an app's types, for its descriptions in OpenAPI and AsyncAPI: each named type once."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, Final

import msgspec

from styx.values.custom_types import is_model, json_schema

Json = dict[str, Any]

_REF: Final = "#/components/schemas/{name}"
_NOT_OF_NAMES: Final = re.compile(r"[^A-Za-z0-9._-]")


class Schemas:
    """JSON schemas of `annotations`, named types once and under `components`."""

    def __init__(self, annotations: Iterable[Any]) -> None:
        wanted: list[Any] = []
        for annotation in annotations:
            if annotation not in wanted and _has_schema(annotation):
                wanted.append(annotation)
        models = _ModelSchemas()
        found, self.components = msgspec.json.schema_components(wanted, ref_template=_REF, schema_hook=models.of)
        self.components |= models.components
        self._pairs = list(zip(wanted, found, strict=True))

    def of(self, annotation: Any) -> Json:
        """A fresh schema of the annotation; one that JSON schema cannot express is left open."""
        return next((dict(schema) for known, schema in self._pairs if known == annotation), {})


class _ModelSchemas:
    """Schemas of pydantic's models, as pydantic writes them; the schemas of their parts stand under `components`."""

    def __init__(self) -> None:
        self.components: Json = {}

    def of(self, kind: Any) -> Json:
        """The reference to a model's schema, anything for `object`; raises `NotImplementedError` for all else."""
        if kind is object:
            return {}
        if not is_model(kind):
            raise NotImplementedError
        schema: Json = json_schema(kind, ref_template=_REF.format(name="{model}"))
        self.components |= schema.pop("$defs", {})
        name = _NOT_OF_NAMES.sub("_", kind.__name__)
        if self.components.get(name, schema) != schema:  # another module has one of the same name
            name = _NOT_OF_NAMES.sub("_", f"{kind.__module__}.{kind.__qualname__}")
        self.components[name] = schema
        return {"$ref": _REF.format(name=name)}


def _has_schema(annotation: Any) -> bool:
    try:
        msgspec.json.schema(annotation, schema_hook=_ModelSchemas().of)
    except Exception:  # noqa: BLE001 - a type from anywhere; without a schema it is described as anything
        return False
    return True
