"""The columns that a query reads, by their names in it: values that SQL's types lack do no harm in all others."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from styx.query.parameters import nodes

_ALL: Final = frozenset({"STAR", "POSITIONAL_REFERENCE", "PIVOT", "SHOW_REF"})
"""What reads columns without their names."""


def named_columns(tree: Any) -> list[str] | None:
    """All names that may be those of columns, in small letters; None if the query may read a column that it does not
    name.

    `tree`: the query, as DuckDB's parser gives it.
    """
    found: set[str] = set()
    last: set[str] = set()
    tables: set[str] = set()
    for node in nodes(tree):
        if node.get("type") in _ALL or node.get("ref_type") == "NATURAL" or node.get("column_name_alias"):
            return None
        found |= _small(node.get("using_columns") or ())
        if node.get("type") == "COLUMN_REF":
            found |= _small(node["column_names"])
            last |= _small(node["column_names"][-1:])
        elif "sample" in node:  # what stands behind FROM
            tables |= _small([node.get("alias", ""), node.get("table_name", "")])
    # A table's own name, in place of a column's, is the whole row.
    return None if last & tables else sorted(found)


def _small(names: Iterable[str]) -> set[str]:
    return {name.casefold() for name in names}
