"""`styx graph`: the transaction graphs of an app, as text or as a picture."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Final

from cyclopts import Parameter

EXAMPLES: Final = """\
Examples:
  styx graph shop:app
  styx graph shop:app checkout
  styx graph shop:app --svg graphs.svg

Exit codes:
  0    the graphs are on standard output, or in the file
  1    the app declares no graph, or the file cannot be written
  2    there is no such App or graph
"""


def graph(
    target: Annotated[str, Parameter(name="MODULE:APP", help="The App: bank:app, shop.bank:app or src/bank.py:app.")],
    name: Annotated[str | None, Parameter(name="GRAPH", help="One graph of it.")] = None,
    /,
    *,
    svg: Annotated[Path | None, Parameter(help="Draw into this file instead of printing; it is replaced.")] = None,
) -> None:
    """Print or draw the transaction graphs of an app.

    The graphs are those that the app declares. Nothing is run.
    """
    from styx.cli.app_target import load_app
    from styx.cli.exit_codes import CommandFailed, usage_error
    from styx.schema.graph_picture import svg_of
    from styx.schema.graph_text import text_of

    app = load_app(target)
    if not app.graphs:
        raise CommandFailed(f"app {app.name!r} declares no graph: App({app.name!r}, …, graphs=[Graph(…)]) does")
    if name is not None and name not in app.graphs:
        raise usage_error(f"app {app.name!r} has no graph {name!r}; it has: {', '.join(app.graphs)}")
    graphs = [each for each in app.graphs.values() if name is None or each.name == name]
    if svg is None:
        print("\n\n".join(map(text_of, graphs)))
        return
    try:
        svg.write_text(svg_of(graphs, paper=True), "utf-8")
    except OSError as error:
        raise CommandFailed(f"cannot write {svg}: {error.strerror or error}") from None
