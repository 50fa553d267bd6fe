"""The picture of a graph: well-formed, whole, the same each time, and with nothing from outside."""

from __future__ import annotations

from random import Random
from xml.etree import ElementTree as ET

import pytest

from styx.model.function_reference import FunctionReference
from styx.schema.graph_picture import NAME_CHARS_MAX, svg_of
from styx.schema.graph_text import text_of
from tests.schema.test_graph_layout import graph, random_graph

SVG = "{http://www.w3.org/2000/svg}"


def test_each_function_is_named() -> None:
    drawn = ET.fromstring(svg_of([graph("a b", "b c", "c a", "b b")], paper=True))
    words = [each.text for each in drawn.iter(f"{SVG}text")]
    assert words[:2] == ["g", "starts at op.a; a double border is a terminal"]
    assert words[2:] == ["op", "a", "op", "b", "op", "c"]
    tips = [each for each in drawn.iter(f"{SVG}path") if each.get("fill") == "currentColor"]
    assert len(tips) == 4


def test_a_long_name_is_cut_and_told_whole() -> None:
    long = FunctionReference("o" * 120, "f" * 100)
    text = svg_of([graph("a b")._replace(start=long, edges=(), terminals=(long,))], paper=True)
    assert f"<title>{long}</title>" in text
    assert "f" * NAME_CHARS_MAX not in text.replace(str(long), "")


def test_markup_is_escaped() -> None:
    assert "a&lt;b&gt;" in svg_of([graph("a b")._replace(name="a<b>")], paper=True)


@pytest.mark.parametrize("seed", range(20))
def test_all_of_it_is_within_the_paper(seed: int) -> None:
    text = svg_of([random_graph(Random(seed)), graph("a b")], paper=False)
    drawn = ET.fromstring(text)
    assert text == svg_of([random_graph(Random(seed)), graph("a b")], paper=False)
    width, height = int(drawn.get("width", "")), int(drawn.get("height", ""))
    for group in drawn.findall(f"{SVG}g"):
        down = int(group.get("transform", "").removesuffix(")").split()[1])
        for each in group.iter(f"{SVG}rect"):
            x, y, w, h = (int(each.get(name, "")) for name in ("x", "y", "width", "height"))
            assert 0 <= x <= x + w <= width
            assert 0 <= y <= y + h + down <= height


def test_no_graph_is_an_empty_picture() -> None:
    assert 'width="0" height="0"' in svg_of([], paper=True)


def test_as_text() -> None:
    assert text_of(graph("a bc", "bc d", "a d")) == (
        "g: starts at op.a\n  op.a  -> op.bc, op.d\n  op.bc -> op.d\n  op.d  -> (terminal)"
    )
