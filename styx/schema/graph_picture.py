"""A transaction graph as a picture: SVG, for `styx graph` and for the gateway's page.

It refers to nothing outside of it, has no script and no style sheet, and takes the colour of the text around it. The
same graph gives the same bytes. Where things stand is decided in `styx.schema.graph_layout`.
"""

from __future__ import annotations

from collections.abc import Iterable
from html import escape
from itertools import pairwise
from typing import Final, NamedTuple

from styx.model.function_reference import FunctionReference
from styx.model.graph_check import CheckedGraph
from styx.schema.graph_layout import LANE, Layout, layout_of

NAME_CHARS_MAX: Final = 36
"""Of a longer name the picture shows the beginning; its tooltip has all of it."""

_CHAR: Final = 7.8
_BOX: Final = 46
_GAP: Final = 76
_MARGIN: Final = 24
_TOP: Final = 68
_TIP: Final = 9
_ACCENT: Final = "#2563eb"
_FONT: Final = "ui-monospace, Menlo, Consolas, monospace"


class Picture(NamedTuple):
    """`body` are the elements; width and height in pixels."""

    body: str
    width: int
    height: int


def svg_of(graphs: Iterable[CheckedGraph], *, paper: bool) -> str:
    """The graphs, one below the other, as an SVG document; on white `paper`, or without any background."""
    pictures = [picture_of(graph) for graph in graphs]
    width = max((each.width for each in pictures), default=0)
    height = sum(each.height for each in pictures)
    parts, y = [], 0
    for each in pictures:
        parts.append(f'<g transform="translate(0 {y})">{each.body}</g>')
        y += each.height
    ground = f'<rect width="{width}" height="{height}" fill="#fff"/>' if paper else ""
    colour = ' color="#111"' if paper else ""
    size = f'width="{width}" height="{height}" viewBox="0 0 {width} {height}"'
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" role="img" aria-label="Transaction graphs" {size}{colour} '
        f'font-family="{_FONT}">{ground}{"".join(parts)}</svg>\n'
    )


def picture_of(graph: CheckedGraph) -> Picture:
    """One graph with its title."""
    layout = layout_of(graph)
    boxes = _boxes(layout)
    heights = [*layout.rows.values(), *(y for rows in layout.through.values() for y in rows)]
    bottom = _TOP + max(heights) + _BOX + _MARGIN // 2
    edges = [_forward(layout, boxes, edge) for edge in layout.through]
    lanes = [edge for edge in layout.back if edge[0] != edge[1]]
    edges += [_backward(boxes, edge, bottom + LANE * at + LANE // 2) for at, edge in enumerate(lanes)]
    edges += [_loop(boxes[caller]) for caller, callee in layout.back if caller == callee]
    shapes = [_shape(each, boxes[each], graph) for each in graph.functions()]
    title = (
        f'<text x="{_MARGIN}" y="26" font-size="17" font-weight="700" fill="currentColor">{escape(graph.name)}</text>'
    )
    told = f"starts at {graph.start}; a double border is a terminal"
    title += f'<text x="{_MARGIN}" y="44" font-size="11.5" fill="currentColor" opacity=".65">{escape(told)}</text>'
    width = max(box.x + box.width for box in boxes.values()) + _MARGIN + (22 if layout.back else 0)
    width = max(width, _MARGIN * 2 + round(len(told) * 6.6))
    return Picture(title + "".join(edges) + "".join(shapes), width, bottom + LANE * len(lanes) + _MARGIN)


# Boxes -----------------------------------------------------------------------------------------------------


class _Box(NamedTuple):
    """A function's box, and its column: `left` and `width_all` are the column's."""

    x: int
    y: int
    width: int
    left: int
    width_all: int

    @property
    def middle(self) -> int:
        return self.y + _BOX // 2

    @property
    def right(self) -> int:
        return self.x + self.width


def _boxes(layout: Layout) -> dict[FunctionReference, _Box]:
    boxes: dict[FunctionReference, _Box] = {}
    left = _MARGIN
    for functions in layout.columns:
        widths = [_width(each) for each in functions]
        widest = max(widths)
        for each, width in zip(functions, widths, strict=True):
            x = left + (widest - width) // 2
            boxes[each] = _Box(x, _TOP + layout.rows[each], width, left, widest)
        left += widest + _GAP
    return boxes


def _width(function: FunctionReference) -> int:
    chars = max(len(_cut(function.name)), len(_cut(function.operator)))
    return round(max(chars, 6) * _CHAR) + 24


def _cut(name: str) -> str:
    return name if len(name) <= NAME_CHARS_MAX else name[: NAME_CHARS_MAX - 1] + "…"


def _shape(function: FunctionReference, box: _Box, graph: CheckedGraph) -> str:
    starts, ends = function == graph.start, function in graph.terminals
    stroke = _ACCENT if starts else "currentColor"
    width = "2.5" if starts else "1.2"
    frame = f'rx="7" fill="#8882" stroke="{stroke}" stroke-width="{width}"'
    parts = [
        f"<title>{escape(str(function))}</title>",
        f'<rect x="{box.x}" y="{box.y}" width="{box.width}" height="{_BOX}" {frame}/>',
    ]
    if ends:
        parts.append(
            f'<rect x="{box.x + 4}" y="{box.y + 4}" width="{box.width - 8}" height="{_BOX - 8}" rx="4" fill="none" '
            'stroke="currentColor" stroke-width=".8"/>'
        )
    middle = box.x + box.width / 2
    text = f'<text x="{middle:g}" text-anchor="middle" fill="currentColor"'
    parts.append(f'{text} y="{box.y + 18}" font-size="11" opacity=".7">{escape(_cut(function.operator))}</text>')
    parts.append(f'{text} y="{box.y + 34}" font-size="13" font-weight="600">{escape(_cut(function.name))}</text>')
    return f"<g>{''.join(parts)}</g>"


# Edges -----------------------------------------------------------------------------------------------------


def _forward(
    layout: Layout, boxes: dict[FunctionReference, _Box], edge: tuple[FunctionReference, FunctionReference]
) -> str:
    """A curve from the caller's right side, through the columns between, to the callee's left side."""
    caller, callee = boxes[edge[0]], boxes[edge[1]]
    first = next(at for at, functions in enumerate(layout.columns) if edge[0] in functions)
    points = [(caller.right, caller.middle)]
    for at, row in enumerate(layout.through[edge], first + 1):
        column, y = boxes[layout.columns[at][0]], _TOP + _BOX // 2 + row
        points += [(column.left, y), (column.left + column.width_all, y)]
    points.append((callee.x - _TIP, callee.middle))
    path = f"M{points[0][0]} {points[0][1]}"
    for at, ((x1, y1), (x2, y2)) in enumerate(pairwise(points)):
        half = (x1 + x2) // 2
        through = at % 2 == 1
        path += f"L{x2} {y2}" if through else f"C{half} {y1} {half} {y2} {x2} {y2}"
    return _line(path, callee.x, callee.middle)


def _backward(
    boxes: dict[FunctionReference, _Box], edge: tuple[FunctionReference, FunctionReference], lane: int
) -> str:
    """A line from the caller's right side, between the columns and below all functions, to the callee's left side."""
    caller, callee = boxes[edge[0]], boxes[edge[1]]
    out, into = caller.left + caller.width_all + 16, callee.left - 16
    from_y, to_y, turn = caller.middle + 12, callee.middle + 12, 8
    path = (
        f"M{caller.right} {from_y}H{out - turn}q{turn} 0 {turn} {turn}V{lane - turn}q0 {turn} -{turn} {turn}"
        f"H{into + turn}q-{turn} 0 -{turn} -{turn}V{to_y + turn}q0 -{turn} {turn} -{turn}H{callee.x - _TIP}"
    )
    return _line(path, callee.x, to_y)


def _loop(box: _Box) -> str:
    """A line from the box to itself."""
    x, y = box.right, box.y + 12
    path = f"M{x - 18} {box.y}v-6q0 -6 6 -6h18q6 0 6 6v{y - box.y}q0 6 -6 6h-{_TIP - 3}"
    return _line(path, x, y, leftward=True)


def _line(path: str, x: int, y: int, *, leftward: bool = False) -> str:
    """A line with a tip at (x, y)."""
    tail = x + _TIP if leftward else x - _TIP
    return (
        f'<path d="{path}" fill="none" stroke="currentColor" stroke-width="1.4" opacity=".75"/>'
        f'<path d="M{x} {y}L{tail} {y - 4}V{y + 4}Z" fill="currentColor"/>'
    )
