"""Types: which of PostgreSQL's a column of DuckDB's is told as, and what a parameter of PostgreSQL's is cast to.

What PostgreSQL has no type for, such as structures and maps, is told as json.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple


class PgType(NamedTuple):
    """`size`: in bytes, -1 for various. `array`: the oid of its lists. `cast`: DuckDB's name, for a parameter; "" for
    one that stays a text.
    """

    oid: int
    name: str
    size: int
    array: int
    cast: str


_ALL: Final = [
    PgType(16, "bool", 1, 1000, "BOOLEAN"),
    PgType(17, "bytea", -1, 1001, "BLOB"),
    PgType(18, "char", 1, 1002, "VARCHAR"),
    PgType(19, "name", 64, 1003, "VARCHAR"),
    PgType(20, "int8", 8, 1016, "BIGINT"),
    PgType(21, "int2", 2, 1005, "SMALLINT"),
    PgType(23, "int4", 4, 1007, "INTEGER"),
    PgType(25, "text", -1, 1009, "VARCHAR"),
    PgType(26, "oid", 4, 1028, "UINTEGER"),
    PgType(114, "json", -1, 199, "JSON"),
    PgType(700, "float4", 4, 1021, "FLOAT"),
    PgType(701, "float8", 8, 1022, "DOUBLE"),
    PgType(1042, "bpchar", -1, 1014, "VARCHAR"),
    PgType(1043, "varchar", -1, 1015, "VARCHAR"),
    PgType(1082, "date", 4, 1182, "DATE"),
    PgType(1083, "time", 8, 1183, "TIME"),
    PgType(1114, "timestamp", 8, 1115, "TIMESTAMP"),
    PgType(1184, "timestamptz", 8, 1185, "TIMESTAMPTZ"),
    PgType(1186, "interval", 16, 1187, "INTERVAL"),
    PgType(1700, "numeric", -1, 1231, "DECIMAL(38,18)"),
    PgType(2950, "uuid", 16, 2951, "VARCHAR"),
    PgType(3802, "jsonb", -1, 3807, "JSON"),
]
BY_OID: Final = {each.oid: each for each in _ALL}
BY_NAME: Final = {each.name: each for each in _ALL}
BY_ARRAY: Final = {each.array: each for each in _ALL}
UNKNOWN_OID: Final = 705
TEXT: Final = BY_NAME["text"]
TEXT_OIDS: Final = frozenset({18, 19, 25, 1042, 1043, 2950})
"""Types whose parameters stay texts."""

_OF_DUCKDB: Final = {
    "BOOLEAN": "bool",
    "TINYINT": "int2",
    "SMALLINT": "int2",
    "UTINYINT": "int2",
    "INTEGER": "int4",
    "USMALLINT": "int4",
    "BIGINT": "int8",
    "UINTEGER": "int8",
    "UBIGINT": "numeric",
    "HUGEINT": "numeric",
    "UHUGEINT": "numeric",
    "FLOAT": "float4",
    "DOUBLE": "float8",
    "DECIMAL": "numeric",
    "VARCHAR": "text",
    "BLOB": "bytea",
    "DATE": "date",
    "TIME": "time",
    "TIMESTAMP": "timestamp",
    "TIMESTAMP_S": "timestamp",
    "TIMESTAMP_MS": "timestamp",
    "TIMESTAMP_NS": "timestamp",
    "TIMESTAMP WITH TIME ZONE": "timestamptz",
    "TIMESTAMPTZ": "timestamptz",
    "INTERVAL": "interval",
    "UUID": "uuid",
    "JSON": "json",
    '"NULL"': "text",
    "ENUM": "text",
}
_OTHERS: Final = {
    "INT": "int4",
    "INT8": "int8",
    "INT4": "int4",
    "INT2": "int2",
    "LONG": "int8",
    "SHORT": "int2",
    "OID": "oid",
    "BYTEA": "bytea",
    "BINARY": "bytea",
    "VARBINARY": "bytea",
    "NUMERIC": "numeric",
    "DEC": "numeric",
    "BOOL": "bool",
    "LOGICAL": "bool",
    "REAL": "float4",
    "FLOAT4": "float4",
    "FLOAT8": "float8",
    "DATETIME": "timestamp",
    "JSONB": "jsonb",
}
"""Names of types in casts, as DuckDB's parser keeps them."""
_MODIFIED: Final = re.compile(r"([A-Z_ ]++)\(([0-9]++),([0-9]++)\)")


class ColumnType(NamedTuple):
    """A result's column: the type of its values, or of the members of its lists; the modifier of a numeric, else -1."""

    element: PgType
    is_list: bool
    modifier: int = -1

    @property
    def oid(self) -> int:
        """What clients are told."""
        return self.element.array if self.is_list else self.element.oid

    @property
    def size(self) -> int:
        """In bytes, -1 for various."""
        return -1 if self.is_list else self.element.size


CATALOG_CHARS: Final = frozenset(
    {
        *("relkind", "relpersistence", "relreplident", "typtype", "typcategory", "typdelim", "typalign", "typstorage"),
        *("attidentity", "attgenerated", "attstorage", "contype", "confupdtype", "confdeltype", "confmatchtype"),
        *("prokind", "provolatile", "proparallel", "deptype", "amtype", "kind", "elemdelim"),
    }
)
"""Columns of the catalog, and names that clients give them, that are of the type "char" of one byte."""


def catalog_type(column: str, name: str) -> ColumnType:
    """The type of a column in a query about the catalog, where oids have a type of their own."""
    if name in ("UINTEGER", "UINTEGER[]"):
        return ColumnType(BY_NAME["oid"], is_list=name.endswith("]"))
    if name == "VARCHAR" and column in CATALOG_CHARS:
        return ColumnType(BY_NAME["char"], is_list=False)
    return column_type(name)


def column_type(name: str) -> ColumnType:
    """The type of a column, by DuckDB's name of it."""
    member = name.removesuffix("[]")
    modified = _MODIFIED.fullmatch(member)
    found = _OF_DUCKDB.get(modified[1] if modified else "ENUM" if member.startswith("ENUM(") else member)
    if found is None:
        return ColumnType(BY_NAME["json"], is_list=False)
    # A sum's scale, and a product's, is DuckDB's choice. So no modifier says that it is the column's.
    return ColumnType(BY_NAME[found], is_list=name != member)


def parameter_oid(name: str, *, catalog: bool) -> int:
    """The oid of a parameter's type, by DuckDB's name of it; that of text if it is unknown."""
    member = name.removesuffix("[]")
    told = "oid" if catalog and member == "UINTEGER" else _OF_DUCKDB.get(member)
    found = BY_NAME[told or _OTHERS.get(member, "text")]
    return found.array if name != member else found.oid
