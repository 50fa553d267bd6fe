"""What `Table.explain` says: which index serves a query, what it reads, and with what it conflicts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

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


def _taken(plan: Plan, conditions: Conditions) -> str:
    columns: list[Any] = [*plan.index.equal, *plan.fixed]
    if plan.compared is not None:
        columns.append(plan.compared)
    return conditions_text({column.name: conditions[column.name] for column in columns})
