"""The description of an operator's tables in OpenAPI: in words, and as what `?rows=TABLE` of a read or a load takes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from styx.model.app import App
from styx.model.operator import Operator
from styx.schema.description import TableDescription, describe_tables

Json = dict[str, Any]


def tables_text(operator: Operator) -> str:
    """The tables in words, empty without any."""
    told = [_table_text(name, table) for name, table in describe_tables(operator.tables.values()).items()]
    return "\n".join(["Tables:", "", *told]) if told else ""


def _table_text(name: str, table: TableDescription) -> str:
    columns = ", ".join(f"{column} ({kind})" for column, kind in table.columns.items())
    rules = [f"primary key {', '.join(table.key)}"]
    rules += [f"index {index}" for index in table.indexes]
    rules += [f"check {check}" for check in table.checks]
    rules += [f"reference {reference}" for reference in table.references]
    rules += [f"view {view}" for view in table.views]
    return f"- `{name}`: {columns}. {'; '.join(rules)[:1].upper()}{'; '.join(rules)[1:]}."


def row_types(operator: Operator, app: App | None = None) -> dict[str, Any]:
    """The types of rows by the names of their tables; with the `app`, which can be read, also those that the engine
    keeps for an entity: of views and of events.
    """
    types = {name: table.row_type.declared for name, table in operator.tables.items()}
    if app is None:
        return types
    views = [view for table in operator.tables.values() for view in table.views if view.scope == "entity"]
    kept = {event: tables[operator.name].row_type.declared for event, tables in app.kept.items()}
    return {**types, **{view.name: view.row_type for view in views}, **kept}


def rows_parameter(operator: Operator, description: str, app: App | None = None) -> list[Json]:
    """The parameter `rows` of a read or a load, if there are such rows."""
    types = row_types(operator, app)
    if not types:
        return []
    schema = {"type": "string", "enum": list(types)}
    return [{"name": "rows", "in": "query", "description": description, "schema": schema}]


def or_rows(operator: Operator, schema: Json, rows: Callable[[Any], Json], app: App | None = None) -> Json:
    """`schema`, or what `rows` makes of one of the row types."""
    types = row_types(operator, app).values()
    return {"anyOf": [schema, *(rows(each) for each in types)]} if types else schema
