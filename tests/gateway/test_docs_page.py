"""The page: whole without a network, well-formed, and nothing in it is markup that the app's authors wrote."""

import re
from html.parser import HTMLParser
from typing import Any

import pytest

from styx import App, Context, Graph, Operator
from styx.gateway.docs_page import docs_page
from tests.gateway.fake_engine import app

VOID = {"meta", "input", "link", "br"}


class Reader(HTMLParser):
    """Collects the elements and checks that they are closed in order."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.words = ""
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.words += data


def test_well_formed_and_complete() -> None:
    page = Reader(docs_page(app))
    assert page.open == []
    forms = [(e["data-operator"], e.get("data-function")) for tag, e in page.elements if tag == "form"]
    assert forms == [(o.name, f) for o in app.operators.values() for f in (None, *o.functions)]
    assert "Adds two numbers." in page.words
    assert "Values are not interpreted: <b>&amp;</b> stays what it is." in page.words
    assert "add(left: int, right: int = 1) → int" in page.words


def test_needs_nothing_from_elsewhere() -> None:
    page = docs_page(app)
    assert not re.search(r"https?://|//[a-z]|@import|url\(", re.sub(r"\n// .*|\n *// .*", "", page))
    assert not any("src" in attributes or tag == "link" for tag, attributes in Reader(page).elements)


def test_fields_of_a_form() -> None:
    elements = Reader(docs_page(app)).elements
    start = next(i for i, (_, e) in enumerate(elements) if e.get("data-function") == "add")
    key, left, right = [e for tag, e in elements[start:] if tag == "input"][:3]
    assert (key["data-part"], "required" in key) == ("key", True)
    assert (left["name"], "required" in left, "data-optional" in left) == ("left", True, False)
    assert (right["name"], right["placeholder"], "data-optional" in right) == ("right", "default: 1", True)


@pytest.mark.parametrize("evil", ["</script><script>alert(1)</script>", "\"'><img src=x onerror=alert(1)>", "<!--"])
def test_everything_is_escaped(evil: str) -> None:
    operator = Operator("o")

    async def function(ctx: Context, a: str = evil) -> None: ...

    function.__doc__ = f"{evil}\n\n{evil}"
    operator.register(function)
    page = Reader(docs_page(App(evil, operators=[operator])))
    assert page.open == []
    assert [tag for tag, _ in page.elements].count("script") == 1
    assert not any(tag == "img" or "onerror" in attributes for tag, attributes in page.elements)


def test_graphs_are_drawn() -> None:
    operator = Operator("cart")

    @operator.register
    async def checkout(ctx: Context) -> None: ...

    graph = Graph("whole", start=checkout).terminal(checkout)
    page = Reader(docs_page(App("shop", [operator], graphs=[graph])))
    assert ("svg", "whole" in page.words) in [(tag, True) for tag, _ in page.elements]
    assert not [attributes for _, attributes in page.elements if "style" in attributes]
    assert "svg" not in [tag for tag, _ in Reader(docs_page(app)).elements]
