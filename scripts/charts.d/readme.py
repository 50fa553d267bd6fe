"""Writes the table of a chart's values into its README.md, from the comments of values.yaml that begin with `# --`. A
map with such a comment is one value. Only the text between the two marks changes.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple

import yaml

BEGIN: Final = "<!-- values -->"
END: Final = "<!-- /values -->"
MARK: Final = "# --"


class Value(NamedTuple):
    """One row: `meaning` is the comment, "" without one."""

    name: str
    default: Any
    meaning: str


def values_of(text: str) -> list[Value]:
    """The values of a values.yaml, in its order. Raises `yaml.YAMLError`."""
    node = yaml.compose(text, Loader=yaml.SafeLoader)
    return [] if node is None else list(_values(node, yaml.safe_load(text), text.splitlines(), ""))


def _values(node: yaml.Node, data: Any, lines: list[str], prefix: str) -> Iterator[Value]:
    for key, inner in node.value:
        name, meaning = prefix + key.value, _comment(lines, key.start_mark.line)
        if isinstance(inner, yaml.MappingNode) and inner.value and not meaning:
            yield from _values(inner, data[key.value], lines, name + ".")
        else:
            yield Value(name, data[key.value], meaning)


def _comment(lines: list[str], line: int) -> str:
    """The comment that ends just above `line`, from its mark on."""
    found: list[str] = []
    for above in reversed(lines[:line]):
        text = above.strip()
        if not text.startswith("#"):
            break
        found.insert(0, text.removeprefix(MARK).removeprefix("#").strip())
        if text.startswith(MARK):
            return " ".join(found)
    return ""


def table(values: list[Value]) -> str:
    """The rows as Markdown."""
    rows = [
        f"| `{name}` | `{_cell(json.dumps(default, ensure_ascii=False))}` | {_cell(meaning)} |"
        for name, default, meaning in values
    ]
    return "\n".join(["| value | default | meaning |", "|---|---|---|", *rows])


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def with_table(readme: str, rows: str) -> str:
    """The README with these rows between its marks. Raises `ValueError` without marks."""
    before, begin, rest = readme.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not (begin and end):
        raise ValueError(f"it has no place for the table: {BEGIN} and {END}, each on a line of its own")
    return f"{before}{BEGIN}\n\n{rows}\n\n{END}{after}"


def main(arguments: list[str]) -> int:
    check = "--check" in arguments
    stale = []
    for chart in (Path(each) for each in arguments if each != "--check"):
        values = values_of((chart / "values.yaml").read_text())
        bare = [value.name for value in values if not value.meaning]
        if bare:
            print(f"{chart}/values.yaml: without a comment that begins with `{MARK}`: {', '.join(bare)}")
            return 1
        readme = (chart / "README.md").read_text()
        new = with_table(readme, table(values))
        if new != readme:
            stale.append(str(chart))
            if not check:
                (chart / "README.md").write_text(new)
    if check and stale:
        print(f"The table of values is not as in values.yaml. Run: scripts/chart-readme {' '.join(stale)}")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
