"""What there is to be looked at: the values and the tables of each operator, each with its columns.

`of_app` makes it of an app, whose types decode then what is stored, and which has views. `of_description` makes it of
what the snapshot's own version of the app declares, without its code: values are plain data then, rows have the columns
that the description names, and views are not there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from msgspec import inspect

from styx.errors import UnknownOperator, UnsupportedValue
from styx.model.app import App
from styx.model.group_rows import stored_ends, with_ends
from styx.model.operator import Operator
from styx.model.partitioning import KeyType, stable_hash
from styx.model.table_names import entry_name, kept_event, row_table
from styx.query.fields import JSON, Field, field_of, kind_of, shown_value, unique_names
from styx.relational.columns import Column
from styx.relational.table import Table
from styx.relational.view import View
from styx.schema.description import AppDescription, OperatorDescription, parse_key_type
from styx.values.codec import decode_plain, shown

VALUE: Final = "value"
"""The column of an operator's values that are not shown by their parts."""
_BY_ATTRIBUTE: Final = (inspect.StructType, inspect.DataclassType)

Values = Sequence[Any]


@dataclass(frozen=True)
class Dataset:
    """The values of an operator's entities, or the rows of one of their tables.

    `name`: `cart`, or `cart/items`; `stored`: the slot's table. `keys` are the columns of the entity's key, `fields`
    the others. `key_type` is None where entries belong to no entity: rows of a view over many. `decode` makes an object
    of stored bytes, `values` the fields' values of that. `slot_of` says where an entity lives, None if only the app's
    code knows. `view`: the one whose rows these are, if they get least and greatest values. `primary`: the fields that
    tell apart the rows of an entity.
    """

    operator: str
    name: str
    stored: str
    key_type: KeyType | None
    keys: tuple[Field, ...]
    fields: tuple[Field, ...]
    decode: Callable[[bytes], Any]
    values: Callable[[Any], Values]
    slot_of: Callable[[Any, int], int] | None
    rows: bool
    view: View | None = None
    primary: tuple[str, ...] = ()

    @property
    def own_name(self) -> str:
        """The table's name without its operator's, "" for the values."""
        return self.name.partition("/")[2]

    @property
    def columns(self) -> tuple[Field, ...]:
        """All columns."""
        return self.keys + self.fields

    @property
    def tables(self) -> tuple[str, ...]:
        """The slot's tables that are read for it."""
        return (self.stored, *([] if self.view is None else [each.table.full_name for each in self.view.rankings]))

    def key_parts(self, key: Any) -> tuple[Any, ...]:
        """The values in the columns of the entity's key, of the key of an entry."""
        return (key if type(key) is tuple else (key,))[: len(self.keys)]

    def records(self, entries: Mapping[str, Mapping[Any, bytes]]) -> Iterable[tuple[Any, ...]]:
        """The entries of a slot as values of all columns, in order of their keys; raises `UnsupportedValue` that names
        the one that cannot be decoded.
        """
        stored = entries.get(self.stored, {})
        whole = self.whole_of(entries)
        for key in sorted(stored):
            try:
                values = self.values(whole(key, stored[key]))
            except Exception as error:  # noqa: BLE001 - a type's own code can run here
                raise misfit(self, key, error) from None
            yield (*self.key_parts(key), *values)

    def whole_of(self, entries: Mapping[str, Mapping[Any, bytes]]) -> Callable[[Any, bytes], Any]:
        """What decodes an entry of a slot, given its key and its bytes; the row of a view gets its ends."""
        view, decode = self.view, self.decode
        if view is None:
            return lambda key, data: decode(data)
        ends = stored_ends(view, entries)
        return lambda key, data: with_ends(view, decode(data), ends(key))


def misfit(dataset: Dataset, key: Any, error: Exception) -> UnsupportedValue:
    """The error that names an entry which cannot be decoded."""
    return UnsupportedValue(
        f"{entry_name(dataset.name, key)} cannot be shown: {error}. The types that have written it can decode it: "
        "give them with --app MODULE:APP"
    )


@dataclass
class Schema:
    """The datasets of an app by name. `notes`: what a person should know of what was decoded."""

    app: str
    datasets: dict[str, Dataset] = field(default_factory=dict)
    notes: set[str] = field(default_factory=set)
    hint: str = ""

    def dataset(self, name: str) -> Dataset:
        """A dataset by its name; raises `UnknownOperator` that lists what there is."""
        found = self.datasets.get(name)
        if found is not None:
            return found
        operator = name.partition("/")[0]
        tables = sorted(each.own_name for each in self.datasets.values() if each.operator == operator and each.own_name)
        if operator in self.datasets:
            known = ", ".join(tables) or "none"
            raise UnknownOperator(
                f"operator {operator!r} has no table {shown(name.partition('/')[2])}; it has: {known}{self.hint}"
            )
        known = ", ".join(sorted({each.operator for each in self.datasets.values()})) or "none"
        raise UnknownOperator(f"app {self.app!r} has no operator {shown(operator)}; it has: {known}")

    def add(self, dataset: Dataset) -> None:
        """Takes a dataset, whose name is not taken."""
        assert dataset.name not in self.datasets, dataset.name
        self.datasets[dataset.name] = dataset


# Of an app -----------------------------------------------------------------------------------------------------------


def of_app(app: App) -> Schema:
    """The schema of an app, whose types decode what is stored."""
    schema = Schema(app.name)
    for operator in app.operators.values():
        fields, values = _of_state(operator)
        keys = key_fields(operator.key_type, fields)
        schema.add(
            Dataset(
                operator.name,
                operator.name,
                operator.name,
                operator.key_type,
                keys,
                fields,
                operator.decode_state,
                values,
                operator.slot_of,
                rows=False,
            )
        )
    for table in app.tables.values():
        operator = app.operators[table.operator]
        name = row_table(operator.name, _shown_name(table))
        schema.add(_of_table(table, operator.name, name, operator.key_type, operator.slot_of))
    for table in app.tables.values():
        for view in table.views:
            if view.scope != "entity":
                schema.add(_of_view(schema, view))
    return schema


def _shown_name(table: Table) -> str:
    if table.view_rule is not None:
        return table.view_rule.name
    return table.keeps_event or table.name


def _of_table(
    table: Table,
    operator: str,
    name: str,
    key_type: KeyType | None,
    slot_of: Callable[[Any, int], int] | None,
    entity: Sequence[Field] | None = None,
) -> Dataset:
    fields = tuple(field_of(column) for column in table.columns.values())
    if entity is None:
        assert key_type is not None
        entity = key_fields(key_type, fields)

    def values(row: Any) -> Values:
        return [shown_value(each, getattr(row, each.name)) for each in fields]

    rule = table.view_rule
    view = rule if rule is not None and rule.rankings else None
    keys, decode, primary = tuple(entity), table.row_type.decode, tuple(column.name for column in table.key)
    return Dataset(
        operator, name, table.full_name, key_type, keys, fields, decode, values, slot_of, True, view, primary
    )


def _of_view(schema: Schema, view: View) -> Dataset:
    """A view over the entities of a partition, or of the app: no entity has its rows."""
    operator = view.source.operator
    name = row_table(operator, view.name)
    if name in schema.datasets:
        name = row_table(operator, f"{view.source.name}.{view.name}")
    fields = tuple(view.table.columns)
    entity = [Field(each, "int") for each in unique_names(["partition"], {*fields}, "of_")]
    return _of_table(view.table, operator, name, None, None, entity if view.scope == "partition" else ())


def _of_state(operator: Operator) -> tuple[tuple[Field, ...], Callable[[Any], Values]]:
    info: Any = None if operator.typed_state is None else inspect.type_info(operator.state_type)
    if isinstance(info, _BY_ATTRIBUTE):
        fields = tuple(field_of(Column(each.name, each.type)) for each in info.fields)

        def by_attribute(state: Any) -> Values:
            return [shown_value(each, getattr(state, each.name, None)) for each in fields]

        return fields, by_attribute
    kind = JSON if info is None else kind_of(Column(VALUE, info).type_name)
    whole = Field(VALUE, kind)
    return (whole,), lambda state: [shown_value(whole, state)]


def key_fields(key_type: KeyType, fields: Iterable[Field]) -> tuple[Field, ...]:
    """The columns of the entity's key: `key`, `key_2` and so on."""
    parts = key_type.parts if key_type.scalar is None else (key_type.scalar,)
    names = ["key", *(f"key_{at}" for at in range(2, len(parts) + 1))]
    unique = unique_names(names, {each.name for each in fields}, "entity_")
    return tuple(Field(name, part.__name__) for name, part in zip(unique, parts, strict=True))


# Of a description ----------------------------------------------------------------------------------------------------


def of_description(app: AppDescription) -> Schema:
    """The schema of a description: values as plain data, rows by their columns, no views."""
    schema = Schema(app.name, hint="; views are shown with --app MODULE:APP")
    for name, operator in app.operators.items():
        key_type = parse_key_type(operator.key_type)
        whole = (Field(VALUE, JSON),)
        keys, slot_of = key_fields(key_type, whole), _slot_of(operator)
        schema.add(Dataset(name, name, name, key_type, keys, whole, decode_plain, _whole_value, slot_of, rows=False))
        for own, table in operator.tables.items():
            stored = row_table(name, own)
            fields = tuple(Field(each, kind_of(type_name)) for each, type_name in table.columns.items())
            values = _PlainRows(schema, stored, fields)
            keys = key_fields(key_type, fields)
            shown_as = row_table(name, kept_event(stored) or own)
            place = (name, shown_as, stored, key_type, keys, fields)
            schema.add(Dataset(*place, decode_plain, values, slot_of, rows=True, primary=tuple(table.key)))
    return schema


def _whole_value(value: Any) -> Values:
    return (value,)


def _slot_of(operator: OperatorDescription) -> Callable[[Any, int], int] | None:
    if operator.partition_key:
        return None
    return lambda key, n_slots: stable_hash(key) % (operator.n_partitions or n_slots) % n_slots


class _PlainRows:
    """Rows as plain data: a map by the columns' names, or an array in their order."""

    def __init__(self, schema: Schema, table: str, fields: tuple[Field, ...]) -> None:
        self._schema = schema
        self._table = table
        self._fields = fields
        self._names = {each.name for each in fields}

    def __call__(self, row: Any) -> Values:
        if type(row) is list:
            if len(row) > len(self._fields):
                raise UnsupportedValue(f"the row has {len(row)} parts, and the table {len(self._fields)} columns")
            row = {each.name: part for each, part in zip(self._fields, row, strict=False)}
        elif not row.keys() <= self._names:
            other = min(map(str, row.keys() - self._names))
            self._schema.notes.add(
                f"rows of {self._table} have parts that are no columns of the stored schema, such as {other!r}: they "
                "are left out; --app MODULE:APP decodes rows by their types"
            )
        return [shown_value(each, row.get(each.name)) for each in self._fields]
