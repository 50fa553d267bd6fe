"""The types of a query's parameters, by where they stand in it: `a = $1` has the type of column `a`, `$1::date` is a
date, `limit $1` a number. DuckDB itself has no type for a parameter until it has a value. Where none follows, it is
unknown, and the caller gives a text, which DuckDB converts as it does texts in quotes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from styx.query.fields import JSON
from styx.query.relations import Table

PARAMETERS_MAX: Final = 65_535
"""The highest number of a parameter, which is PostgreSQL's."""
UNKNOWN: Final = ""

_OF_KIND: Final = {
    "int": "BIGINT",
    "str": "VARCHAR",
    "bool": "BOOLEAN",
    "bytes": "BLOB",
    "float": "DOUBLE",
    "Decimal": "DECIMAL",
    "date": "DATE",
    "datetime": "TIMESTAMP WITH TIME ZONE",
    "naive datetime": "TIMESTAMP",
    "UUID": "VARCHAR",
    JSON: "JSON",
}
_NUMBERS: Final = {"BIGINT", "INTEGER", "SMALLINT", "HUGEINT", "DOUBLE", "FLOAT", "DECIMAL"}
_OF_LITERAL: Final = {"INTEGER": "BIGINT", "STRING": "VARCHAR", "DECIMAL": "DECIMAL", "BOOLEAN": "BOOLEAN"}
_TEXT_OPERATORS: Final = {"~~", "!~~", "~~*", "!~~*", "regexp_matches", "regexp_full_match", "||", "starts_with"}
_TEXTS: Final = {"->>", "lower", "upper", "trim", "ltrim", "rtrim", "substr", "substring", "replace", "concat", "||"}
_COUNTS: Final = {"count", "count_star", "length", "len", "octet_length"}
_AS_ARGUMENT: Final = {"+", "-", "*", "/", "%", "sum", "min", "max", "abs", "round", "nullif"}


def parameter_types(tree: Any, tables: Iterable[Table]) -> list[str]:
    """DuckDB's type of `$1`, `$2` and so on, `UNKNOWN` where none follows.

    `tree`: the query, as DuckDB's parser gives it. `tables`: those that it names. Raises `ValueError` for a parameter
    that is no number from 1 to `PARAMETERS_MAX`, or that a gap follows: all below the highest are there.
    """
    columns = _columns(tables)
    found: dict[int, str] = {}
    for node in nodes(tree):
        if (number := _number(node)) is not None:
            found.setdefault(number, UNKNOWN)
        for child, wanted in _told(node, columns):
            at = _number(child)
            if at is not None and not found.get(at):
                found[at] = wanted
    return [found.get(at, UNKNOWN) for at in range(1, max(found, default=0) + 1)]


def nodes(tree: Any) -> Iterator[dict[str, Any]]:
    """All objects in a parsed query, in their order."""
    left = [tree]
    while left:
        node = left.pop()
        if isinstance(node, list):
            left += reversed(node)
        elif isinstance(node, dict):
            left += reversed(node.values())
            yield node


def _columns(tables: Iterable[Table]) -> dict[str, str]:
    """The type of each column by its name in small letters, `UNKNOWN` for one that tables have with several types."""
    found: dict[str, str] = {}
    for table in tables:
        for name, kind in table.columns:
            wanted = _OF_KIND[kind]
            found[name.casefold()] = wanted if found.get(name.casefold(), wanted) == wanted else UNKNOWN
    return found


def _number(node: Any) -> int | None:
    if not isinstance(node, dict) or node.get("class") != "PARAMETER":
        return None
    text = str(node["identifier"])
    if not (text.isascii() and text.isdigit() and 0 < int(text) <= PARAMETERS_MAX):
        raise ValueError(f"${text} is no parameter: they are $1 to ${PARAMETERS_MAX}")
    return int(text)


def _told(node: dict[str, Any], columns: Mapping[str, str]) -> Iterator[tuple[Any, str]]:
    """The children of an expression whose type it tells, with the type."""
    kind = node.get("class")
    if node.get("type") == "LIMIT_MODIFIER":
        yield node.get("limit"), "BIGINT"
        yield node.get("offset"), "BIGINT"
    elif kind == "CAST":
        yield node["child"], _named(node["type_expr"])
    elif kind in ("COMPARISON", "BETWEEN"):
        yield from _alike([node.get(each) for each in ("left", "right", "input", "lower", "upper")], columns)
    elif kind == "OPERATOR" and node["type"] in ("COMPARE_IN", "COMPARE_NOT_IN", "OPERATOR_COALESCE"):
        yield from _alike(node["children"], columns)
    elif kind == "SUBQUERY" and node.get("child") is not None:
        yield _unnested(node["subquery"]), f"{_type_of(node['child'], columns) or 'VARCHAR'}[]"
    elif kind == "FUNCTION":
        arguments = [each["expression"] for each in node["arguments"]]
        if node["function_name"] in _TEXT_OPERATORS:
            yield from ((each, "VARCHAR") for each in arguments)
        elif node["is_operator"]:
            yield from (each for each in _alike(arguments, columns) if each[1] in _NUMBERS)


def _alike(together: list[Any], columns: Mapping[str, str]) -> Iterator[tuple[Any, str]]:
    wanted = next(filter(None, (_type_of(each, columns) for each in together)), UNKNOWN)
    return ((each, wanted) for each in together)


def _unnested(subquery: dict[str, Any]) -> Any:
    """The list of `= ANY(list)`, which the parser makes a query over `unnest(list)`; None for a real one."""
    match subquery["node"]:
        case {"select_list": [{"function_name": "unnest", "arguments": [{"expression": found}]}]}:
            return found
    return None


def _type_of(node: Any, columns: Mapping[str, str]) -> str:
    """The type of an expression, as far as its look tells."""
    while isinstance(node, dict):
        match node.get("class"):
            case "COLUMN_REF":
                return columns.get(node["column_names"][-1].casefold(), UNKNOWN)
            case "CAST":
                return _named(node["type_expr"])
            case "CONSTANT":
                return _OF_LITERAL.get(node.get("literal", {}).get("kind"), UNKNOWN)
            case "FUNCTION":
                name = node["function_name"]
                if name in _TEXTS or name in _COUNTS:
                    return "VARCHAR" if name in _TEXTS else "BIGINT"
                arguments = node["arguments"] if name in _AS_ARGUMENT else ()
                node = arguments[0]["expression"] if arguments else None
            case _:
                return UNKNOWN
    return UNKNOWN


def _named(type_expr: dict[str, Any]) -> str:
    """The name of a type in a cast: `INTEGER`, `INTEGER[]`."""
    lists = 0
    while type_expr.get("type_name") == "list" and type_expr["children"]:
        type_expr, lists = type_expr["children"][0], lists + 1
    return str(type_expr.get("type_name", UNKNOWN)).upper() + "[]" * lists
