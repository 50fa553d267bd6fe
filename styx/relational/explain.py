"""What `Table.explain` says: which index serves a query, what it reads, and with what it conflicts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from styx.relational.app_wide import AppWideIndex
from styx.relational.query import Conditions, Plan, conditions_text

if TYPE_CHECKING:
    from styx.relational.table import Table


def explanation(table: Table, plan: Plan, conditions: Conditions) -> str:
    """The explanation of one query, several lines."""
    index = plan.index
    lines = [f"{table.full_name}: {conditions_text(conditions) or 'all rows of the entity'}"]
    if plan.whole:
        lines.append(f"  reads all rows of the entity, by index {index.name!r}")
    else:
        lines.append(f"  reads the rows of the entity by index {index.name!r} with {_taken(plan, conditions)}")
    if plan.filters:
        names = ", ".join(column.name for column in plan.filters)
        lines.append(f"  filters them by {names}: rows that do not meet this are read as well")
    order = [column.name for column in index.order] + [c.name for c in table.key if c not in index.order]
    lines.append(f"  order: {', '.join(order)}")
    lines.append(
        "  conflicts with transactions that insert, delete or change a row that is, or was, among those that it reads"
    )
    return "\n".join(lines)


def explained_look_up(index: AppWideIndex, values: Conditions) -> str:
    """The explanation of a look-up by an index over the app; raises `BadQuery` as the look-up would."""
    look = index.asked(values)
    named = [column.name for column in index.columns]
    more = conditions_text({name: each for name, each in values.items() if name not in named})
    order = f"by {', '.join([column.name for column in index.order])}, then in their order" if index.order else ""
    return "\n".join(
        [
            f"{index.table}: {index.text_of(look.value)}{more and f', {more}'}",
            f"  looks up the index {index.name!r}, which is over the app: one call, of the entity of the value",
            f"  gives the keys of the rows, {order or 'in their order'}; the rows are read by calls to their entities",
            "  conflicts with transactions that insert, delete or change a row that has the value"
            f"{more and ' and is in this range'}, or had it",
        ]
    )


def _taken(plan: Plan, conditions: Conditions) -> str:
    columns: list[Any] = [*plan.index.equal, *plan.fixed]
    if plan.compared is not None:
        columns.append(plan.compared)
    return conditions_text({column.name: conditions[column.name] for column in columns})
