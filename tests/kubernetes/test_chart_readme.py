"""`scripts/chart-readme`: the table of values is what values.yaml says."""

from __future__ import annotations

from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Final

import pytest

ROOT: Final = Path(__file__).parents[2]


def _script() -> ModuleType:
    spec = spec_from_file_location("chart_readme", ROOT / "scripts" / "charts.d" / "readme.py")
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_table_is_up_to_date(capsys: pytest.CaptureFixture[str]) -> None:
    marked = [path for path in (ROOT / "helm").glob("*/README.md") if "<!-- values -->" in path.read_text()]
    assert ROOT / "helm" / "styx" / "README.md" in marked
    assert _script().main(["--check", *(str(path.parent) for path in marked)]) == 0, capsys.readouterr().out


def test_rows_are_values_with_their_comments() -> None:
    text = """\
# A group.
one:
  # -- How many,
  # at most.
  count: 3
  # -- A map with a comment is one value: a|b.
  labels: {a: b}
  # An ordinary comment.
  bare: ""
"""
    script = _script()
    values = script.values_of(text)
    assert [tuple(value) for value in values] == [
        ("one.count", 3, "How many, at most."),
        ("one.labels", {"a": "b"}, "A map with a comment is one value: a|b."),
        ("one.bare", "", ""),
    ]
    assert script.table(values[1:2]).splitlines()[2:] == [
        '| `one.labels` | `{"a": "b"}` | A map with a comment is one value: a\\|b. |'
    ]


def test_a_stale_table_is_told_and_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "values.yaml").write_text("# -- How many.\ncount: 3\n")
    readme = tmp_path / "README.md"
    readme.write_text("# One\n\n<!-- values -->\n<!-- /values -->\n\nThe end.\n")
    script = _script()
    assert script.main(["--check", str(tmp_path)]) == 1
    assert "Run: scripts/chart-readme" in capsys.readouterr().out
    assert script.main([str(tmp_path)]) == 0
    assert "| `count` | `3` | How many. |\n\n<!-- /values -->\n\nThe end.\n" in readme.read_text()
    assert script.main(["--check", str(tmp_path)]) == 0


def test_a_value_without_a_comment_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "values.yaml").write_text("count: 3\n")
    assert _script().main([str(tmp_path)]) == 1
    assert "count" in capsys.readouterr().out
