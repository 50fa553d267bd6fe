"""`styx state export --url`: the entities and rows of a running system as the records of an export, all of one epoch.

With `--app` the app's types decode values and give the columns, as of a snapshot. Without it, columns are those of the
gateway's OpenAPI document: values are JSON, and times, Decimals and bytes of rows are texts, as they are in JSON.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final
from urllib.parse import quote

import msgspec

from styx.cli.exit_codes import CommandFailed, usage_error
from styx.cli.live_state import LiveGateway
from styx.errors import UnsupportedValue
from styx.gateway.head import PREFIX
from styx.model.app import App
from styx.model.partitioning import KeyType
from styx.model.table_names import row_table
from styx.query.export import Pieces, Record
from styx.query.fields import JSON, Field
from styx.query.schema import VALUE, Dataset, Schema, key_fields, misfit, of_app
from styx.values.custom_types import dec_hook

PAGE: Final = 1_000
_KEY_TYPES: Final[dict[str, type]] = {"string": str, "integer": int}
_KINDS: Final = {"string": "str", "integer": "int", "number": "float", "boolean": "bool"}
_NULL: Final = {"type": "null"}


class _Entry(msgspec.Struct):
    key: str | int | list[str | int]
    value: msgspec.Raw


class Live:
    """What a gateway has: `datasets`, and what decodes the JSON of each of them by its name."""

    def __init__(self, gateway: LiveGateway, schema: Schema, types: dict[str, Any]) -> None:
        self.schema = schema
        self._gateway = gateway
        self._decoders = {
            name: msgspec.json.Decoder(kind, dec_hook=dec_hook, strict=True) for name, kind in types.items()
        }

    def pieces(self, datasets: Sequence[Dataset], at: int | None) -> Pieces:
        """The records of these datasets, page by page, at the end of the epoch `at`, or of the newest one; raises
        `CommandFailed` if that epoch is not kept any more.
        """
        for place, dataset in enumerate(datasets):
            for page in self._gateway.pages(dataset.name, PAGE, at):
                at = page.epoch
                piece: list[Sequence[Record]] = [()] * len(datasets)
                piece[place] = list(self._records(dataset, page.entries))
                yield piece

    def _records(self, dataset: Dataset, entries: list[msgspec.Raw]) -> Iterator[Record]:
        decode = self._decoders[dataset.name].decode
        for data in entries:
            entry = msgspec.json.decode(data, type=_Entry)
            key = tuple(entry.key) if isinstance(entry.key, list) else entry.key
            try:
                values = dataset.values(decode(entry.value))
            except Exception as error:  # noqa: BLE001 - a type's own code can run here
                raise misfit(dataset, key, error) from None
            yield (*dataset.key_parts(key), *values)


def of_live_app(gateway: LiveGateway, app: App) -> Live:
    """By the types of the app, which must be the one that is served."""
    served = _document(gateway)["info"]["title"]
    if served != app.name:
        raise usage_error(f"--app is app {app.name!r}, and {gateway.url} serves {served!r}")
    schema, types = of_app(app), dict[str, Any]()
    for name, dataset in list(schema.datasets.items()):
        if not dataset.rows:
            kind = app.operators[dataset.operator].state_type
            types[name] = Any if kind is None else kind
        elif dataset.key_type is None:
            del schema.datasets[name]  # a view over many entities, which nobody can list
        else:
            types[name] = app.declared_table(dataset.stored).row_type.declared
    return Live(gateway, schema, types)


def of_document(gateway: LiveGateway) -> Live:
    """By what the gateway says of its app."""
    document = _document(gateway)
    schema = Schema(document["info"]["title"])
    for tag in document["tags"]:
        operator = tag["name"]
        path = f"{PREFIX}{quote(operator)}"
        if path not in document["paths"] or "get" not in document["paths"][path]:
            continue  # not an operator whose entities can be listed
        key_type = _key_type(document["paths"][f"{path}/{{key}}"]["get"]["parameters"][0])
        whole = (Field(VALUE, JSON),)
        keys = key_fields(key_type, whole)
        schema.add(
            Dataset(operator, operator, operator, key_type, keys, whole, bytes, lambda value: (value,), None, False)
        )
        for table, row in _tables(document, path):
            schema.add(_of_rows(operator, table, key_type, row, document))
    return Live(gateway, schema, dict.fromkeys(schema.datasets, Any))


def _document(gateway: LiveGateway) -> Any:
    try:
        return msgspec.json.decode(gateway.get("/openapi.json"))
    except (msgspec.DecodeError, CommandFailed) as error:
        raise CommandFailed(f"{gateway.url} does not say what there is (/openapi.json): {error}") from None


def _key_type(parameter: Any) -> KeyType:
    schema = parameter.get("schema") or parameter["content"]["application/json"]["schema"]
    if "prefixItems" in schema:
        return KeyType(tuple(_KEY_TYPES[each["type"]] for each in schema["prefixItems"]))
    return KeyType(_KEY_TYPES[schema["type"]])


def _tables(document: Any, path: str) -> Iterator[tuple[str, Any]]:
    """The tables of an operator, with the schemas of their rows."""
    operation = document["paths"][path]["get"]
    names = [each["schema"]["enum"] for each in operation["parameters"] if each.get("name") == "rows"]
    if names:
        page = operation["responses"]["200"]["content"]["application/json"]["schema"]["properties"]["result"]
        _, *rows = page["properties"]["entries"]["items"]["properties"]["value"]["anyOf"]
        yield from zip(names[0], rows, strict=True)


def _of_rows(operator: str, table: str, key_type: KeyType, row: Any, document: Any) -> Dataset:
    named = _resolved(row, document).get("properties", {})
    fields = tuple(Field(name, _kind(each)) for name, each in named.items())
    name = row_table(operator, table)

    def values(value: Any) -> list[Any]:
        if not fields or not isinstance(value, dict):
            raise UnsupportedValue("its JSON has no names of columns")
        return [value.get(each.name) for each in fields]

    return Dataset(operator, name, name, key_type, key_fields(key_type, fields), fields, bytes, values, None, rows=True)


def _resolved(schema: Any, document: Any) -> Any:
    reference = schema.get("$ref", "")
    return document["components"]["schemas"][reference.rpartition("/")[2]] if reference else schema


def _kind(schema: Any) -> str:
    """The kind of a column with this schema."""
    variants = [each for each in schema.get("anyOf", [schema]) if each != _NULL]
    kind = variants[0].get("type") if len(variants) == 1 else None
    return _KINDS.get(kind, JSON) if isinstance(kind, str) else JSON
