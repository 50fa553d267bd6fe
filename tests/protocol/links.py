"""What is on its way between the cores, the log and the store: first in, first out, except on links held back.

Order only; it never looks into what it carries.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple


class Underway(NamedTuple):
    """`text` tells a reader what arrives; `deliver` makes it."""

    link: str
    text: str
    deliver: Callable[[], None]


class Links:
    """Links are named by their ends, `w0 -> w1`, or by owner and kind, `w0 log`; each keeps its order."""

    def __init__(self) -> None:
        self.underway: list[Underway] = []
        self.held: set[str] = set()

    def put(self, link: str, text: str, deliver: Callable[[], None]) -> None:
        self.underway.append(Underway(link, text, deliver))

    def next(self) -> Underway | None:
        """Takes the first that may arrive now."""
        for index, item in enumerate(self.underway):
            if item.link not in self.held:
                return self.underway.pop(index)
        return None

    def take(self, link: str) -> list[Underway]:
        """Takes all on one link."""
        taken = [item for item in self.underway if item.link == link]
        self.underway = [item for item in self.underway if item.link != link]
        return taken

    def lose(self, end: str) -> None:
        """A process is gone, and everything on its links except held appends: the log may still get those."""
        self.underway = [
            item
            for item in self.underway
            if end not in item.link.split() or (item.link in self.held and item.link.split()[1] in ("log", "replies"))
        ]
