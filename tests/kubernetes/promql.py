"""PromQL expressions as tests look at them: which series they read, and which labels they use. Evaluates nothing."""

from __future__ import annotations

import re
from collections.abc import Container
from typing import Any, NamedTuple

import promql_parser as promql

_VARIABLES = (("$__rate_interval", "5m"), ("$namespace", "a"), ("$release", "b"))
_OPERATORS = {"MatchOp.Equal": "=", "MatchOp.NotEqual": "!=", "MatchOp.Re": "=~", "MatchOp.NotRe": "!~"}
_GROUPINGS = re.compile(r"\b(?:by|without|on|ignoring|group_left|group_right)\s*\(([^()]*)\)")


class Selector(NamedTuple):
    """One selection of series; `matchers` are (label, operator, value)."""

    metric: str
    matchers: tuple[tuple[str, str, str], ...]


def parse(text: str) -> Any:
    """The expression; Grafana's variables are replaced by something. Raises `ValueError` where it is none."""
    for name, value in _VARIABLES:
        text = text.replace(name, value)
    return promql.parse(text)


def selectors(expression: Any) -> list[Selector]:
    """All selections in it."""
    return [_selector(node) for node in _nodes(expression) if isinstance(node, promql.VectorSelector)]


def read_by(expression: Any, functions: Container[str]) -> set[str]:
    """Metrics whose range is an argument of these functions, such as `rate`."""
    calls = [node for node in _nodes(expression) if isinstance(node, promql.Call) and node.func.name in functions]
    ranges = [each for call in calls for each in call.args if isinstance(each, promql.MatrixSelector)]
    return {each.vector_selector.name or "" for each in ranges}


def grouping_labels(text: str) -> set[str]:
    """Labels that it groups or matches by."""
    return {label.strip() for group in _GROUPINGS.findall(text) for label in group.split(",") if label.strip()}


def kept_labels(expression: Any) -> set[str] | None:
    """Labels that its result has; None: those of the series that it reads."""
    if isinstance(expression, promql.ParenExpr):
        return kept_labels(expression.expr)
    if isinstance(expression, promql.BinaryExpr):
        return kept_labels(expression.lhs)
    if isinstance(expression, promql.AggregateExpr):
        return set(expression.modifier.labels) if expression.modifier is not None else set()
    if isinstance(expression, promql.Call) and expression.func.name == "absent":
        return set()
    if isinstance(expression, promql.Call) and expression.func.name == "histogram_quantile":
        kept = kept_labels(expression.args[1])
        return None if kept is None else kept - {"le"}
    return None


def _nodes(expression: Any) -> list[Any]:
    found: list[Any] = []
    promql.walk(expression, found.append)
    return found


def _selector(node: Any) -> Selector:
    return Selector(
        node.name, tuple((each.name, _OPERATORS[str(each.op)], each.value) for each in node.matchers.matchers)
    )
