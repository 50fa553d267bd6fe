"""`styx explain`: which index serves a query of a table, what it reads, and with what it conflicts."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Annotated, Any, Final

from cyclopts import Parameter

if TYPE_CHECKING:
    from styx.relational.table import Table

EXAMPLES: Final = """\
Examples:
  styx explain shop:app cart/items product=7
  styx explain shop:app cart/orders state=open 'at>=2026-01-01T00:00:00Z'
  styx explain shop:app cart/orders 'name^=An' --by by_name
  styx explain shop:app cart/items --scan

Conditions:
  column=value      equality; column=null asks for None
  column>=value     also >, <= and <; >= and <= of one column are a between
  column^=value     a text that begins so
A shell needs quotes around > and <. Values are read as the column's type says.

Exit codes:
  0    the explanation is on standard output
  1    no index serves the query; the message says which one would
  2    there is no such App, table, column or index, or a value does not fit
"""
_CONDITION: Final = re.compile(r"([^=<>^]++)(=|>=|>|<=|<|\^=)(.*+)", re.DOTALL)


def explain(
    target: Annotated[str, Parameter(name="MODULE:APP", help="The App: bank:app, shop.bank:app or src/bank.py:app.")],
    table: Annotated[str, Parameter(name="OPERATOR/TABLE", help="The table's full name, such as cart/items.")],
    /,
    *conditions: Annotated[str, Parameter(name="CONDITION", help="What the query asks of a column: cents=5.")],
    by: Annotated[str | None, Parameter(help="The index to use, as by= of a query.")] = None,
    scan: Annotated[bool, Parameter(negative=(), help="Read all rows if no index serves, as scan=True.")] = False,
) -> None:
    """Say which index serves a query of a table, and what it costs.

    Nothing is read: the answer follows from the declarations alone, and is that
    of the table's explain().
    """
    from styx.cli.app_target import load_app
    from styx.cli.exit_codes import CommandFailed, usage_error
    from styx.errors import BadArguments, BadQuery, MissingIndex, UnknownOperator, UnsupportedValue

    app = load_app(target)
    try:
        declared = app.declared_table(table)
        asked = _parsed(declared, conditions)
        print(declared.explain(asked, by=by, scan=scan))
    except MissingIndex as error:
        raise CommandFailed(str(error)) from None
    except (BadArguments, BadQuery, UnknownOperator, UnsupportedValue) as error:
        raise usage_error(str(error)) from None


def _parsed(table: Table, texts: tuple[str, ...]) -> dict[str, Any]:
    """The conditions of a query by column; raises `BadQuery`."""
    from styx.errors import BadQuery
    from styx.relational import conditions

    comparisons: dict[str, Any] = {
        "=": lambda value: value,
        ">=": conditions.at_least,
        ">": conditions.above,
        "<=": conditions.at_most,
        "<": conditions.below,
        "^=": conditions.prefix,
    }
    given: dict[str, dict[str, Any]] = {}
    for text in texts:
        match = _CONDITION.fullmatch(text)
        if match is None:
            raise BadQuery(f"{text!r} is no condition; one looks like column=value, column>=value or column^=beginning")
        name, operation, value = match.groups()
        if operation in given.setdefault(name, {}):
            raise BadQuery(f"column {name!r} has two conditions with {operation}: a query has one for each column")
        given[name][operation] = _value(table, name, operation, value)
    asked: dict[str, Any] = {}
    for name, values in given.items():
        if len(values) == 1:
            (operation, value), *_ = values.items()
            asked[name] = comparisons[operation](value)
        elif values.keys() == {">=", "<="}:
            asked[name] = conditions.between(values[">="], values["<="])
        else:
            raise BadQuery(f"column {name!r} has several conditions; of two only >= and <= go together")
    return asked


def _value(table: Table, name: str, operation: str, text: str) -> Any:
    """The value as the column's type reads it; raises `BadQuery`."""
    from typing import get_type_hints

    import msgspec

    from styx.errors import BadQuery

    column = table.columns.get(name)
    if column is None:
        raise BadQuery(table.row_type.no_column(name))
    if text == "null" and operation == "=" and column.optional:
        return None
    try:
        return msgspec.convert(text, get_type_hints(table.row_type.declared)[name], strict=False)
    except msgspec.ValidationError as error:
        raise BadQuery(
            f"column {name!r} is of type {column.type_name}, and {text!r} is no value of it: {error}"
        ) from None
