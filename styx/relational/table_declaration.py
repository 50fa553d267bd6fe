"""Checks the declaration of a table, and says all that is wrong with it at once."""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING, Any, Final

from styx.errors import ConfigurationError
from styx.model.limits import APP_INDEXES_PER_TABLE_MAX, INDEXES_PER_TABLE_MAX, NAME_CHARS_MAX
from styx.relational.app_wide import AppWideIndex
from styx.relational.columns import Column
from styx.relational.declarations import SCOPES, Check, Index, Ref, columns_of, not_of_a_row
from styx.relational.index_decoder import index_decoder
from styx.relational.ordered_part import ORDERED_TYPES, has_parts
from styx.relational.partition_index import PartitionIndex, PartitionOf
from styx.relational.query import plan_of
from styx.relational.reference import equalities
from styx.relational.reference_declaration import inside_entity
from styx.relational.row_indexes import ColumnIndex, PrimaryKey, RowIndex
from styx.relational.row_type import RowType
from styx.relational.time_to_live import EACH, NONE_US, in_us, is_ttl, wrong_ttl
from styx.values.codec import shown

if TYPE_CHECKING:
    from styx.relational.table import Table

_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*+")
PRIMARY_KEY: Final = "primary key"
"""The name of index 0. No declared index can have it."""
_AUTO: Final[dict[str, type]] = {"unique": str, "serial": int}


class TableDeclaration:
    """Builds the parts of `table` from what `Operator.table` was given; `problems` are in the order of the parameters.

    `end` raises `ConfigurationError` if there are any.
    """

    def __init__(self, table: Table) -> None:
        self.table = table
        self.problems: list[str] = []
        self.app_wide: list[AppWideIndex] = []
        self._indexes: list[RowIndex] = []

    def end(self) -> None:
        """Raises `ConfigurationError` with all problems."""
        if self.problems:
            raise ConfigurationError(f"table {self.table.full_name}: {'; '.join(self.problems)}")

    def name(self, name: Any) -> str:
        if not isinstance(name, str) or not _NAME.fullmatch(name) or len(name) > NAME_CHARS_MAX:
            raise ConfigurationError(
                f"a table's name is letters, digits and '_', at most {NAME_CHARS_MAX} characters, and starts with a "
                f"letter or '_': operator {self.table.operator!r} got {shown(name)}"
            )
        return name

    def former_name(self, was: Any) -> str:
        if was != "" and (not isinstance(was, str) or not _NAME.fullmatch(was) or was == self.table.name):
            raise ConfigurationError(
                f"table {self.table.full_name}: was= is the name that the table had before, without its operator's: "
                f"got {shown(was)}"
            )
        return str(was)

    def row_type(self, declared: Any) -> RowType:
        """Raises at once: without columns nothing else can be checked."""
        try:
            return RowType(self.table.full_name, declared)
        except ConfigurationError as error:
            raise ConfigurationError(f"table {self.table.full_name}: {error}") from None

    def key(self, given: Any) -> tuple[Column, ...]:
        columns = self.columns("the primary key", columns_of(given))
        # The compiled form takes this keyword for the parameter of `update`, positional-only or not.
        if "pk" in self.table.columns and all(column.name != "pk" for column in columns):
            self.problems.append("column 'pk' has the name of a parameter of ctx.rows(…): rename it")
        if not columns and not self.problems and self.table.view_rule is None:
            self.problems.append("the primary key needs a column: key=…")
        for column in columns:
            if column.optional:
                self.problems.append(f"column {column.name!r} of the primary key may be None")
            elif column.kind is not None and not column.kind.in_keys:
                self.problems.append(
                    f"column {column.name!r} of the primary key is of type {column.type_name}; keys are made of str, "
                    "int, bool, date, datetime, UUID and enums of them"
                )
        return columns

    def indexes(self, given: Any, references: Any, partition_of: PartitionOf) -> tuple[RowIndex, ...]:
        """The primary key, the declared indexes, and one for each reference whose children no other index finds."""
        table = self.table
        self._indexes = [PrimaryKey(table.full_name, 0, PRIMARY_KEY, table.entity_parts, (), table.key, True)]
        for index in all_of(given):
            if not isinstance(index, Index):
                self.problems.append(f"indexes= takes Index objects, got {shown(index)}")
                continue
            self._check_index(index)
            what = f"index {index.name!r}"
            equal, order = self.columns(what, index.equal), self.columns(what, index.order)
            if index.scope == "app":
                self.app_wide.append(AppWideIndex(table.full_name, index.name, equal, order, index.unique))
            elif index.scope == "partition":
                self._add_across(index.name, equal, order, partition_of)
            else:
                self._add(index.name, equal, order, index.unique is True)
        names = Counter([*(index.name for index in self._indexes), *(index.name for index in self.app_wide)])
        self.problems += [f"two indexes are named {name!r}" for name, times in names.items() if times > 1]
        for reference in all_of(references):
            known = isinstance(reference, Ref) and all(name in table.columns for name in reference.columns)
            if known and inside_entity(table, reference):
                self._add_for(tuple(table.columns[name] for name in reference.columns))
        if len(self.app_wide) > APP_INDEXES_PER_TABLE_MAX:
            self.problems.append(
                f"it has {len(self.app_wide)} app-wide indexes; the limit is {APP_INDEXES_PER_TABLE_MAX}"
            )
        if len(self._indexes) - 1 > INDEXES_PER_TABLE_MAX:
            self.problems.append(
                f"it has {len(self._indexes) - 1} indexes, those of its references included; the limit is "
                f"{INDEXES_PER_TABLE_MAX}"
            )
        return tuple(self._indexes)

    def _add(self, name: str, equal: tuple[Column, ...], order: tuple[Column, ...], unique: bool) -> None:
        table = self.table
        self._indexes.append(
            ColumnIndex(
                table.full_name,
                len(self._indexes),
                name,
                table.entity_parts,
                equal,
                order,
                unique,
                index_decoder(table.row_type, equal + order),
            )
        )

    def _add_across(
        self, name: str, equal: tuple[Column, ...], order: tuple[Column, ...], partition_of: PartitionOf
    ) -> None:
        table, number = self.table, len(self._indexes)
        decode = index_decoder(table.row_type, equal + order)
        self._indexes.append(
            PartitionIndex(table.full_name, number, name, table.entity_parts, equal, order, decode, partition_of)
        )

    def _add_for(self, columns: tuple[Column, ...]) -> None:
        of_entities = [index for index in self._indexes if not isinstance(index, PartitionIndex)]
        plan = plan_of(of_entities, self.table.columns, equalities(columns))
        if plan is None or plan.filters:
            names = "_".join(column.name for column in columns)
            self._add(f"reference {names}", columns, (), False)

    def _check_index(self, index: Index) -> None:
        if not isinstance(index.name, str) or not _NAME.fullmatch(index.name) or len(index.name) > NAME_CHARS_MAX:
            self.problems.append(f"an index's name is letters, digits and '_', got {shown(index.name)}")
        if not index.equal and not index.order:
            self.problems.append(f"index {index.name!r} needs columns: equal=… or order=…")
        if type(index.unique) is not bool:
            self.problems.append(f"index {index.name!r}: unique= is True or False, got {shown(index.unique)}")
        if index.scope not in SCOPES:
            self.problems.append(f"index {index.name!r}: scope= is one of {', '.join(SCOPES)}")
        elif index.scope == "app":
            self._check_app_wide(index)
        elif index.scope == "partition" and index.unique:
            self.problems.append(
                f"index {index.name!r}: unique=True is for the rows of one entity. Which entities share a partition "
                "depends on the number of slots, and must not decide what is a violation"
            )

    def _check_app_wide(self, index: Index) -> None:
        what = f'index {index.name!r}, scope="app"'
        if not index.equal:
            self.problems.append(
                f"{what}: it needs equal=: the rows of a value stand where the value says, so a look-up names one"
            )
        if index.unique and index.order:
            self.problems.append(f"{what}: with unique=True a value has one row, which order= cannot put in order")
        for name in index.order:
            column = self.table.columns.get(name) if isinstance(name, str) else None
            if column is None:
                continue
            if name in index.equal:
                self.problems.append(f"{what}: column {name!r} is in equal= and in order=: take it out of one")
            if column.kind is not None and not has_parts(column):
                self.problems.append(
                    f"{what}: column {name!r} is of type {column.type_name}; order= takes {ORDERED_TYPES}"
                )
            if column.optional:
                self.problems.append(
                    f"{what}: column {name!r} of order= may be None: give it a value that stands for none, since the "
                    "entries of the index have no place for None"
                )
        for name in index.equal:
            column = self.table.columns.get(name) if isinstance(name, str) else None
            if column is not None and column.kind is not None and not column.kind.in_keys:
                self.problems.append(
                    f"{what}: column {name!r} is of type {column.type_name}; the values are looked up as keys, which "
                    "are made of str, int, bool, date, datetime, UUID and enums of them"
                )

    def columns(self, what: str, names: tuple[Any, ...]) -> tuple[Column, ...]:
        """The columns of these names that can be in a key or index; all others are problems of `what`."""
        found = []
        twice = [name for name, times in Counter(map(str, names)).items() if times > 1]
        self.problems += [f"{what} has the column {name!r} twice" for name in twice]
        for name in names:
            if not isinstance(name, str):
                self.problems.append(f"{what}: a column is a name, several are a tuple of names: got {shown(name)}")
                continue
            column = self.table.columns.get(name)
            if column is None:
                known = ", ".join(self.table.columns)
                self.problems.append(f"{what}: the row type has no column {shown(name)}; it has: {known}")
            elif column.kind is None:
                self.problems.append(
                    f"{what}: column {name!r} is of a type without an order, and can be in no key or index"
                )
            else:
                found.append(column)
        return tuple(found)

    def checks(self, given: Any) -> tuple[Check, ...]:
        checks = []
        for check in all_of(given):
            if not isinstance(check, Check) or not isinstance(check.name, str):
                self.problems.append(f'checks= takes Check("name", lambda row: …) objects, got {shown(check)}')
            elif why := not_of_a_row(check.function):
                self.problems.append(f"check {check.name!r} {why}")
            else:
                checks.append(check)
        names = Counter(check.name for check in checks)
        self.problems += [f"two checks are named {name!r}" for name, times in names.items() if times > 1]
        return tuple(checks)

    def auto_default(self, auto: Any) -> Any:
        """The value of the key's column for which the engine puts one, None without `auto`."""
        if auto is None:
            return None
        key = self.table.key
        if auto not in _AUTO:
            self.problems.append(f'auto= is "unique" or "serial", got {shown(auto)}')
        elif len(key) != 1 or key[0].kind is None or key[0].kind.classes != (_AUTO[auto],):
            self.problems.append(f"auto={auto!r} needs a primary key of one column of type {_AUTO[auto].__name__}")
        else:
            try:
                return self.table.row_type.default_of(key[0].name)
            except LookupError:
                default = '""' if auto == "unique" else "0"
                self.problems.append(
                    f"auto={auto!r}: column {key[0].name!r} needs a default, such as {default}, which stands for a row "
                    "that has no key yet"
                )
        return None

    def ttl_us(self, ttl: Any) -> int:
        """How long rows live usually, in microseconds; 0 if they have no usual time."""
        if ttl is None or ttl == EACH:
            return NONE_US
        if not is_ttl(ttl):
            self.problems.append(wrong_ttl(ttl, f', or "{EACH}" if only rows that are given one have one'))
            return NONE_US
        return in_us(ttl)


def all_of(given: Any) -> tuple[Any, ...]:
    """What a parameter was given: one object, or several."""
    return tuple(given) if isinstance(given, list | tuple) else (given,)
