"""The description of an operator's tables in OpenAPI: in words, and as what `?rows=TABLE` of a read or a load takes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from styx.model.operator import Operator
from styx.schema.description import TableDescription, describe_tables

Json = dict[str, Any]


def tables_text(operator: Operator) -> str:
    """The tables in words, empty without any."""
    told = [_table_text(name, table) for name, table in describe_tables(operator).items()]
    return "\n".join(["Tables:", "", *told]) if told else ""


def _table_text(name: str, table: TableDescription) -> str:
    columns = ", ".join(f"{column} ({kind})" for column, kind in table.columns.items())
    rules = [f"primary key {', '.join(table.key)}"]
    rules += [f"index {index}" for index in table.indexes]
    rules += [f"check {check}" for check in table.checks]
    rules += [f"reference {reference}" for reference in table.references]
    rules += [f"view {view}" for view in table.views]
    return f"- `{name}`: {columns}. {'; '.join(rules)[:1].upper()}{'; '.join(rules)[1:]}."


def row_types(operator: Operator, views: bool) -> dict[str, Any]:
    """The types of rows by the names of their tables, with `views` also those of the groups that an entity has."""
    types = {name: table.row_type.declared for name, table in operator.tables.items()}
    kept = [view for table in operator.tables.values() for view in table.views if view.scope == "entity"]
    return {**types, **{view.name: view.row_type for view in kept}} if views else types


def rows_parameter(operator: Operator, description: str, views: bool = False) -> list[Json]:
    """The parameter `rows` of a read or a load, if the operator has tables."""
    if not operator.tables:
        return []
    schema = {"type": "string", "enum": list(row_types(operator, views))}
    return [{"name": "rows", "in": "query", "description": description, "schema": schema}]


def or_rows(operator: Operator, schema: Json, rows: Callable[[Any], Json], views: bool = False) -> Json:
    """`schema`, or what `rows` makes of one of the row types."""
    types = row_types(operator, views).values()
    return {"anyOf": [schema, *(rows(each) for each in types)]} if types else schema
