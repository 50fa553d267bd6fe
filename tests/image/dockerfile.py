"""Reads a Dockerfile: its stages, and their instructions as words. Knows no variables, nor syntax that ours lacks."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final, NamedTuple

ROOT: Final = Path(__file__).parents[2]
NAMED_STAGE_WORDS: Final = 3
"""`FROM BASE AS NAME` has as many after the first one."""


class Instruction(NamedTuple):
    """`RUN`, `COPY` and so on, with the rest of the line or lines."""

    keyword: str
    rest: str


class Stage(NamedTuple):
    """From one `FROM` to the next; `name` is empty if nothing refers to it."""

    base: str
    name: str
    instructions: list[Instruction]

    def of(self, keyword: str) -> list[str]:
        """What follows each of these, in their order."""
        return [each.rest for each in self.instructions if each.keyword == keyword]


def instructions(text: str) -> list[Instruction]:
    """Comments left out, continued lines joined."""
    lines = [line for line in text.splitlines() if not line.lstrip().startswith("#")]
    joined = re.sub(r"\\\n\s*", " ", "\n".join(lines))
    found = [line.partition(" ") for line in joined.splitlines() if line.strip()]
    return [Instruction(keyword.upper(), rest.strip()) for keyword, _, rest in found]


def stages(text: str) -> list[Stage]:
    """In their order; what stands before the first `FROM` is left out."""
    found: list[Stage] = []
    for each in instructions(text):
        if each.keyword == "FROM":
            words = each.rest.split()
            found.append(Stage(words[0], words[2] if len(words) == NAMED_STAGE_WORDS else "", []))
        elif found:
            found[-1].instructions.append(each)
    return found


def copied(stage: Stage) -> list[str]:
    """What it copies from the build's context."""
    return [source for rest in stage.of("COPY") if not rest.startswith("--") for source in rest.split()[:-1]]
