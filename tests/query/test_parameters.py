"""Where a parameter stands tells its type, as far as the query's look does."""

from __future__ import annotations

import pytest

from styx.query.relations import Table
from styx.query.sql_process import Refused, connected, named

ITEMS = Table(
    "cart",
    "items",
    [
        ("product", "int"),
        ("Seller", "str"),
        ("price", "Decimal"),
        ("day", "date"),
        ("at", "datetime"),
        ("tags", "json"),
    ],
)
OTHER = Table("other", "items", [("product", "str"), ("gift", "bool"), ("raw", "bytes"), ("weight", "float")])
ZONED = "TIMESTAMP WITH TIME ZONE"
TAGS = "VARCHAR INTEGER JSON"


@pytest.mark.parametrize(
    ("sql", "types"),
    [
        ("select 1", []),
        ("select $1", [""]),
        (
            "select $2::int, $1::varchar[], cast($3 as decimal(10, 2)), $4::bigint[][]",
            ["VARCHAR[]", "INTEGER", "DECIMAL", "BIGINT[][]"],
        ),
        ("select 1 from cart.items where product = $1 and $2 < seller and items.price <> $3", "BIGINT VARCHAR DECIMAL"),
        (
            "select 1 from cart.items i where i.DAY between $1 and $2 and i.at not in ($3, now())",
            ["DATE", "DATE", ZONED],
        ),
        ("select 1 from other.items where gift = $1 or raw = $2 or weight > $3", "BOOLEAN BLOB DOUBLE"),
        ("select 1 from cart.items where product = any($1) and seller = any($2)", "BIGINT[] VARCHAR[]"),
        ("select 1 from cart.items where product in (select product from cart.items where seller = $1)", "VARCHAR"),
        ("select nix = any($1) or abs($2) = any($3)", ["VARCHAR[]", "", "VARCHAR[]"]),
        ("select 1 from cart.items limit $1 offset $2", "BIGINT BIGINT"),
        ("select price * $1, product + $2, day + $3 from cart.items", ["DECIMAL", "BIGINT", ""]),
        ("select seller || $1 from cart.items where seller like $2 and seller ~ $3", "VARCHAR VARCHAR VARCHAR"),
        ("select 1 from cart.items where tags->>'a' = $1 and (tags->>'b')::int = $2 and tags = $3", TAGS),
        ("select product from cart.items group by all having sum(price) > $1 and count(*) > $2", "DECIMAL BIGINT"),
        ("select coalesce(seller, $1), $2 = 5, $3 = 'x', $4 = max(day) from cart.items", "VARCHAR BIGINT VARCHAR DATE"),
        ("select 1 from cart.items, other.items where product = $1", [""]),
        ("select $3 = 1", ["", "", "BIGINT"]),
        ("select $1, $1::int, $1::date", ["INTEGER"]),
    ],
)
def test_types(sql: str, types: str | list[str]) -> None:
    wanted = types.split() if isinstance(types, str) else types
    assert named(connected(), sql, [ITEMS, OTHER]).parameters == wanted


@pytest.mark.parametrize("sql", ["select $name", "select $65536"])
def test_what_is_no_parameter(sql: str) -> None:
    with pytest.raises(Refused, match=r"is no parameter: they are \$1 to \$65535"):
        named(connected(), sql, [])
