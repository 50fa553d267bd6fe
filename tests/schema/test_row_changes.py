"""Stored rows against the tables of another version: what fits, what is refused, and what a conversion makes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any

import msgspec
import pytest

from styx import App, Check, Index, Operator, Ref
from styx.errors import ConfigurationError
from styx.model.limits import Limits
from styx.schema.conversion import NotConverted, conversion
from styx.schema.description import describe, refusal, refusal_to_go_back
from styx.schema.state_check import StateCheck, check_tables
from styx.schema.state_findings import OFFENDERS_SHOWN, StateFindings


class Item(msgspec.Struct):
    product: int
    quantity: int = 1
    label: str | None = None


class WithPrice(msgspec.Struct):
    product: int
    quantity: int = 1
    label: str | None = None
    price: int = 7


class WithoutLabel(msgspec.Struct):
    product: int
    quantity: int = 1


class NeedsPrice(msgspec.Struct):
    product: int
    price: int


class FewOnly(msgspec.Struct):
    product: int
    quantity: Annotated[int, msgspec.Meta(lt=3)] = 1
    label: str | None = None


class Part(msgspec.Struct):
    number: int
    of: int | None = None


def app_of(row: Any = Item, name: str = "items", *, drops: list[str] | None = None, **declared: Any) -> App:
    cart = Operator("cart", n_partitions=1)
    cart.table(name, row, key=declared.pop("key", "product"), **declared)
    return App("shop", [cart], drops=drops or [])


def without_tables(drops: list[str] | None = None) -> App:
    return App("shop", [Operator("cart", n_partitions=1)], drops=drops or [])


def stored(*rows: Any, entity: str = "a", key: str = "product") -> dict[Any, bytes]:
    return {(entity, getattr(row, key)): msgspec.msgpack.encode(row) for row in rows}


def found(app: App, rows: dict[Any, bytes], name: str = "cart/items", **others: dict[Any, bytes]) -> StateFindings:
    tables = {name: rows, **{f"cart/{other}": table for other, table in others.items()}}
    return check_tables(app, 1, Limits(), {0: tables})


def why(findings: StateFindings) -> str:
    text = findings.refusal()
    assert text is not None
    return text


def test_rows_that_fit() -> None:
    findings = found(app_of(), stored(Item(1), Item(2)))
    assert (findings.checked, findings.rows, findings.refusal()) == (2, 2, None)
    assert findings.notes() == ["stored entities and rows checked: 2; all of them fit"]


def test_a_column_with_a_default_is_stored_with_it() -> None:
    app = app_of(WithPrice)
    assert found(app, stored(Item(1))).refusal() is None
    changed = conversion(app, {"cart/items": stored(Item(1))}, Limits(), 1)
    assert changed.writes == {"cart/items": stored(WithPrice(1))}
    assert not conversion(app, {"cart/items": stored(WithPrice(1))}, Limits(), 1)


def test_a_dropped_column_is_told() -> None:
    findings = found(app_of(WithoutLabel), stored(Item(1, label="x"), Item(2, label="y")))
    assert findings.refusal() is None
    assert findings.notes()[1:] == [
        "table 'cart/items': with a part that its row type does not have, and that is lost when they are put next: 2, "
        "such as cart/items[('a', 1)].label"
    ]


def test_a_column_without_a_default_is_refused_with_the_first_offenders() -> None:
    text = why(found(app_of(NeedsPrice), stored(*(Item(number) for number in range(OFFENDERS_SHOWN + 2)))))
    first, *lines = text.split("\n")
    assert first == "12 of 12 stored entities and rows do not fit the new version:"
    assert lines[0] == "  cart/items[('a', 0)]: missing required field 'price'"
    assert lines[OFFENDERS_SHOWN] == "  … and 2 more"
    assert "operator.table(..., migrate=)" in lines[OFFENDERS_SHOWN + 1]
    assert len(lines) == OFFENDERS_SHOWN + 2, "no advice on entities"


def test_advice_is_on_what_does_not_fit() -> None:
    lines = ["cart['a']: expected 'int', got 'str'", "cart/items[('a', 1)]: missing required field 'price'"]
    text = why(StateFindings(2, 2, lines, rows=1))
    assert ("Operator(..., migrate=)" in text, "operator.table(..., migrate=)" in text) == (True, True)


def test_a_constraint_of_a_column_is_tried() -> None:
    assert "cart/items[('a', 2)].quantity: expected 'int' <= 2" in why(
        found(app_of(FewOnly), stored(Item(1), Item(2, quantity=3)))
    )


def test_a_check_is_tried() -> None:
    app = app_of(checks=[Check("few", lambda row: row.quantity < 3)])
    text = why(found(app, stored(Item(1), Item(2, quantity=3))))
    assert text.startswith("1 of 2 ")
    assert "does not meet the check 'few'" in text
    raising = app_of(checks=[Check("few", lambda row: row.quantity < row.label)])
    assert "a check raised TypeError: '<' not supported between" in why(found(raising, stored(Item(1))))


def unique_label() -> App:
    return app_of(indexes=[Index("by_label", equal="label", unique=True)])


class Folded(msgspec.Struct):
    product: int
    quantity: int = 1
    label: str | None = None

    def __post_init__(self) -> None:
        self.label = self.label and self.label.lower()


def test_code_of_a_row_type_gives_indexes_what_is_stored() -> None:
    """Without an index on the column, rows are what the code makes of them."""
    rows = stored(Item(1, label="a"), Item(2, label="B"))
    assert found(app_of(Folded), rows).refusal() is None
    text = why(found(app_of(Folded, indexes=Index("by_label", equal="label")), rows))
    assert text.splitlines()[1:2] == [
        "  cart/items[('a', 2)].label: code of the row type, such as __post_init__, makes ('b',) of the stored ('B',), "
        "and an index has the column: store the value with migrate="
    ]


def test_a_unique_index_is_tried_within_each_entity() -> None:
    app = unique_label()
    rows = stored(Item(1, label="x"), Item(2), Item(3)) | stored(Item(1, label="x"), entity="b")
    assert found(app, rows).refusal() is None, "another entity's rows, and rows without a value, are not compared"
    text = why(found(app, rows | stored(Item(4, label="x"))))
    assert text.startswith("1 of 5 ")
    assert "cart/items[('a', 4)]: cart/items[('a', 1)] has the same values in the unique index 'by_label'" in text


def test_rows_that_change_while_a_unique_index_is_tried() -> None:
    check, rows = StateCheck(unique_label(), 1, Limits()), stored(Item(1, label="x"), Item(2, label="y"))
    check.add(0, "cart/items", rows)
    assert check.run(1_000)
    rows |= stored(Item(1, label="y"), Item(2, label="x"))  # they have exchanged their values
    check.add(0, "cart/items", rows, [("a", 1), ("a", 2)])
    assert check.run(1_000)
    assert check.take().refusal() is None
    rows |= stored(Item(3, label="x"))
    check.add(0, "cart/items", rows, [("a", 3)])
    assert check.run(1_000)
    assert "cart/items[('a', 2)] has the same values" in why(check.take())


def family() -> App:
    cart = Operator("cart", n_partitions=1)
    items = cart.table("items", Item, key="product")
    cart.table("parts", Part, key="number", references=[Ref("of", items)])
    return App("shop", [cart])


def test_a_reference_is_tried() -> None:
    parts = stored(Part(1, of=1), Part(2), key="number")
    assert found(family(), stored(Item(1)), parts=parts).refusal() is None
    text = why(found(family(), stored(Item(2)) | stored(Item(1), entity="b"), parts=parts))
    assert text.startswith("1 of 4 ")
    assert "cart/parts[('a', 1)]: it refers to cart/items[('a', 1)], which does not exist" in text


@pytest.mark.parametrize("slice_", [1, 1_000])
def test_a_parent_that_goes_while_a_reference_is_tried(slice_: int) -> None:
    check = StateCheck(family(), 1, Limits())
    items, parts = stored(Item(1)), stored(Part(1, of=1), key="number")
    check.add(0, "cart/parts", parts)
    check.add(0, "cart/items", items)
    while not check.run(slice_):
        pass
    assert check.take().refusal() is None
    del items["a", 1]
    check.add(0, "cart/items", items, [("a", 1)])
    assert not check.done
    while not check.run(slice_):
        pass
    assert check.done
    assert "it refers to cart/items[('a', 1)], which does not exist" in why(check.take())


def test_another_primary_key_is_refused() -> None:
    new = app_of(key="quantity")
    text = refusal(describe(app_of()), describe(new), {"cart", "cart/items"})
    assert text is not None
    assert "changes its primary key from product to quantity" in text
    assert refusal(describe(app_of()), describe(new), {"cart"}) is None, "it has no rows"
    assert "its columns say the primary key 5" in why(found(new, stored(Item(1, quantity=5))))


def test_a_table_that_is_gone_is_refused_unless_dropped_or_renamed() -> None:
    old, rows = app_of(), stored(Item(1))
    text = refusal(describe(old), describe(without_tables()), {"cart", "cart/items"})
    assert text is not None
    assert 'was="items"' in text
    assert 'drops=["cart/items"]' in text
    assert refusal(describe(old), describe(without_tables()), {"cart"}) is None, "it has no rows"
    assert "the new version has no table 'cart/items'" in why(found(without_tables(), rows))
    dropping = without_tables(["cart/items"])
    assert refusal(describe(old), describe(dropping), {"cart", "cart/items"}) is None
    findings = found(dropping, rows)
    assert findings.refusal() is None
    assert "table 'cart/items': rows that are dropped: 1" in findings.notes()
    renamed = app_of(name="goods", was="items")
    assert refusal(describe(old), describe(renamed), {"cart", "cart/items"}) is None
    assert found(renamed, rows).refusal() is None


def test_conversion_drops_and_renames() -> None:
    rows = stored(Item(1))
    tables = {"cart/items": rows, "cart": {"a": b"\x01"}}
    dropped = conversion(without_tables(["cart/items"]), tables, Limits(), 1)
    assert not dropped.writes
    assert not dropped.renamed
    assert dropped.dropped == frozenset({"cart/items"})
    renamed = app_of(name="goods", was="items")
    assert conversion(renamed, tables, Limits(), 1).renamed == {"cart/items": "cart/goods"}
    assert not conversion(renamed, {"cart/goods": rows}, Limits(), 1), "a later deployment has nothing to rename"


def test_rows_in_both_tables_of_a_renaming_are_refused() -> None:
    renamed = app_of(name="goods", was="items")
    text = why(found(renamed, stored(Item(1)), goods=stored(Item(2))))
    assert "table 'cart/goods', to which it would be renamed, has rows already" in text
    with pytest.raises(NotConverted, match="has rows already"):
        conversion(renamed, {"cart/items": stored(Item(1)), "cart/goods": stored(Item(2))}, Limits(), 1)


def priced(old: Item) -> NeedsPrice:
    return NeedsPrice(old.product, old.quantity * 10)


def test_migrate_converts_rows_that_do_not_fit() -> None:
    app = app_of(NeedsPrice, name="goods", was="items", migrate=priced)
    rows = stored(Item(1), Item(2, quantity=2))
    findings = found(app, rows)
    assert findings.refusal() is None
    assert "table 'cart/items': converted by migrate=: 2" in findings.notes()
    changed = conversion(app, {"cart/items": rows}, Limits(), 1)
    assert changed.renamed == {"cart/items": "cart/goods"}
    new = stored(NeedsPrice(1, 10), NeedsPrice(2, 20))
    assert changed.writes == {"cart/goods": new}
    assert not conversion(app, {"cart/goods": new}, Limits(), 1)


def test_the_last_number_of_a_table_goes_with_it() -> None:
    sequences = {("a", "table\titems"): b"\x05", ("a", "items"): b"\x06", ("b", "table\titems"): b"\x07"}
    tables = {"cart/items": stored(Item(1)), "cart/<sequences>": sequences}
    renamed = conversion(app_of(name="goods", was="items"), tables, Limits(), 1)
    assert renamed.writes == {
        "cart/<sequences>": {
            ("a", "table\titems"): None,
            ("a", "table\tgoods"): b"\x05",
            ("b", "table\titems"): None,
            ("b", "table\tgoods"): b"\x07",
        }
    }
    dropped = conversion(without_tables(["cart/items"]), tables, Limits(), 1)
    assert dropped.writes == {"cart/<sequences>": {("a", "table\titems"): None, ("b", "table\titems"): None}}


@pytest.mark.parametrize(
    ("migrate", "text"),
    [
        (lambda old: NeedsPrice(old["product"] + 1, 1), "its columns say the primary key 2"),
        (lambda old: Item(old["product"]), "migrate= returned what cannot be stored"),
        (lambda old: 1 // 0, "migrate= raised ZeroDivisionError"),
    ],
)
def test_what_migrate_may_not_do(migrate: Callable[[Any], Any], text: str) -> None:
    assert text in why(found(app_of(NeedsPrice, migrate=migrate), stored(Item(1))))


def test_going_back_behind_a_migrate_is_refused() -> None:
    new, old = describe(app_of(NeedsPrice, migrate=priced)), describe(app_of())
    text = refusal_to_go_back(new, old, {"cart", "cart/items"})
    assert text is not None
    assert "has converted rows of table 'cart/items'" in text
    assert refusal_to_go_back(new, old, {"cart"}) is None
    assert refusal_to_go_back(old, describe(app_of(WithPrice)), {"cart", "cart/items"}) is None


def test_rows_that_would_be_looked_for_elsewhere() -> None:
    findings = check_tables(app_of(), 4, Limits(), {3: {"cart/items": stored(Item(1))}})
    assert "cart/items[('a', 1)]: it is stored in slot 3 and would be looked for in slot 0" in why(findings)


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: app_of(drops=["cart/items"]), "is declared and named in drops="),
        (lambda: app_of(drops=["items"]), "drops= names tables by operator and table"),
        (lambda: app_of(drops=["order/items"]), "of operators that it has"),
        (lambda: app_of(was="items"), "was= is the name that the table had before"),
        (lambda: app_of(was="cart/old"), "without its operator's: got 'cart/old'"),
        (lambda: app_of(was="old", drops=["cart/old"]), "renamed twice or dropped as well"),
        (lambda: app_of(migrate=print), "table 'cart/items': migrate="),
    ],
)
def test_declarations_that_contradict_themselves(make: Callable[[], App], text: str) -> None:
    with pytest.raises(ConfigurationError, match=text):
        make()


def test_two_tables_cannot_have_been_one() -> None:
    cart = Operator("cart")
    cart.table("one", Item, key="product", was="old")
    cart.table("two", Item, key="product", was="old")
    with pytest.raises(ConfigurationError, match="renamed twice"):
        App("shop", [cart])
