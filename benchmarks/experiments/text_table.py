"""A table as text, for people: columns as wide as their widest cell. Pure."""

from __future__ import annotations

from collections.abc import Sequence


def text_table(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Without a newline at the end."""
    every = [headings, *rows]
    widths = [max(len(row[column]) for row in every) for column in range(len(headings))]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in every]
    lines.insert(1, "  ".join("-" * width for width in widths))
    return "\n".join(lines)
