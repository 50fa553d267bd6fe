"""`ctx.log`: what is kept of a line, how much of it, and when it refuses."""

from typing import Any

import pytest

from styx.errors import ContextClosed
from styx.model.cell import Cell, Environment
from styx.model.context import Context
from styx.model.function_log import LINES_BYTES_MAX, LINES_MAX, MESSAGE_CHARS_MAX, Line, Lines
from styx.model.operator import Operator

thing = Operator("thing")


@thing.register
async def act(ctx: Context) -> None: ...


class Kept(Environment):
    def __init__(self) -> None:
        self.lines = Lines()

    def add_line(self, line: Line) -> None:
        self.lines.add(line)


@pytest.fixture
def kept() -> Kept:
    return Kept()


@pytest.fixture
def ctx(kept: Kept) -> Context:
    return Context("a", kept, thing.function("act"), Cell(), b"\0\1", b"", 10)


def test_levels_and_fields(ctx: Context, kept: Kept) -> None:
    changed: list[Any] = [1]
    ctx.log("paid", amount=5, to=("a", 1), items=changed)
    changed.append(2)
    ctx.log.debug("d")
    ctx.log.info("i")
    ctx.log.warning("w")
    ctx.log.error(ValueError("e"))
    first, *others = kept.lines.lines
    assert (first.message, first.fields) == ("paid", {"amount": 5, "to": "('a', 1)", "items": "[1]"})
    assert (first.operator, first.key, first.function, first.path) == ("thing", "a", "act", b"\0\1")
    assert [(line.level, line.message) for line in others] == [(10, "d"), (20, "i"), (30, "w"), (40, "ValueError('e')")]


def test_limits(ctx: Context, kept: Kept) -> None:
    ctx.log("x" * 10_000, y="y" * 10_000)
    [line] = kept.lines.lines
    assert len(line.message) == len(line.fields["y"]) == MESSAGE_CHARS_MAX + 1
    for _ in range(LINES_MAX + 5):
        ctx.log("a")
    assert (len(kept.lines.lines), kept.lines.left_out) == (LINES_MAX, 6)


def test_limit_of_characters(ctx: Context, kept: Kept) -> None:
    for _ in range(100):
        ctx.log("a" * 1_000)
    assert len(kept.lines.lines) == LINES_BYTES_MAX // 1_000
    assert kept.lines.left_out == 100 - LINES_BYTES_MAX // 1_000


def test_a_closed_context_says_nothing(ctx: Context) -> None:
    ctx._close()
    with pytest.raises(ContextClosed):
        ctx.log("late")


def test_elsewhere_nobody_listens() -> None:
    Context("a", Environment(), thing.function("act"), Cell(), b"", b"", 10).log("nothing happens")
