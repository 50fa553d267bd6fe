"""Rows of one worker that refer to parents of another: only what no worker has is missing, and it is named."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from styx import App, Operator, Ref
from styx.model.limits import Limits
from styx.schema import parents
from styx.schema.parents import TooManyParents, new_references
from styx.schema.state_check import StateCheck
from styx.schema.state_findings import StateFindings, together


class Row(msgspec.Struct):
    id: int
    of: int | None = None


class Other(msgspec.Struct):
    id: int
    of: int | None = 7


def app_of(on_delete: str | None = "restrict", row_type: Any = Row, **given: Any) -> App:
    product, cart = Operator("product", key_type=int), Operator("cart")
    stock = product.table("stock", Row, key="id")
    references = [] if on_delete is None else [Ref("of", product, on_delete), Ref(("of", "id"), stock)]
    cart.table("items", row_type, key="id", references=references, **given)
    return App("shop", [product, cart])


app = app_of()
ITEMS, STOCK = "cart/items", "product/stock"


def check_of(slot: int, rows: dict[tuple[str, int], int | None], products: list[int], stock: list[Any]) -> StateCheck:
    check = StateCheck(app, 2, Limits(), referring=[ITEMS])
    check._found = lambda slot, operator, name, keys: keys  # type: ignore[method-assign]  # wherever they belong
    encode = app.tables[ITEMS].row_type.encode
    table = {key: encode(Row(key[1], of)) for key, of in rows.items()}
    check.add(slot, ITEMS, table)
    check.add(slot, "product", dict.fromkeys(products, b"\xc0"))
    check.add(slot, STOCK, {key: encode(Row(key[1])) for key in stock})
    while not check.run(100):
        pass
    return check


def report(*given: Any) -> StateFindings:
    check = check_of(*given)
    needed, there = check.parents()
    return replace(check.take(), needed=needed, there=there)


def test_parents_of_other_workers_count() -> None:
    one = report(0, {("a", 1): 7, ("a", 2): None}, [8], [(8, 1)])
    two = report(1, {("b", 1): 8}, [7], [(7, 1)])
    assert not together([one, two]).offenders
    found = together([one])
    assert found.first == [
        "cart/items[('a', 1)]: it refers to product[7], which does not exist (cart/items(of) → product)",
        "cart/items[('a', 1)]: it refers to row 1 of table product/stock of product[7], which does not exist "
        "(cart/items(of, id) → product/stock)",
    ]
    assert found.offenders == 2


def test_a_row_that_was_changed_is_what_it_is_now() -> None:
    check = check_of(0, {("a", 1): 7, ("a", 2): 8}, [], [])
    encode = app.tables[ITEMS].row_type.encode
    present = check._present[0][ITEMS]
    assert isinstance(present, dict)
    present["a", 1] = encode(Row(1))
    del present["a", 2]
    check.add(0, ITEMS, present, [("a", 1), ("a", 2)])
    while not check.run(100):
        pass
    assert not any(check.parents()[0].values())


def test_few_are_named_and_not_too_many_travel(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parents, "NAMED_MAX", 1)
    check = check_of(0, {("a", 1): 7, ("a", 2): 8}, [1], [])
    needed, there = check.parents(2)
    found = together([replace(check.take(), needed=needed, there=there)])
    assert found.offenders == 4
    assert found.first[1] == "a row refers to what is not there, which does not exist (cart/items(of) → product)"
    with pytest.raises(TooManyParents):
        check.parents(1)
    with pytest.raises(TooManyParents):
        check_of(0, {}, [1, 2], []).parents(1)


@pytest.mark.parametrize(
    ("after", "before", "names"),
    [
        (app_of(), app_of(), set()),
        (app_of("cascade"), app_of(), set()),
        (app_of(None), app_of(), set()),
        (app_of(), app_of(None), {ITEMS}),
        (app_of(row_type=Other), app_of(), {ITEMS}),
        (app_of(migrate=lambda row: row), app_of(), {ITEMS}),
    ],
)
def test_only_what_may_not_hold_is_compared(after: App, before: App, names: set[str]) -> None:
    assert new_references(after, before) == names
