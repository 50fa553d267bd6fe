"""The page at `/sql`: the tables, and a form to type a query in.

One document without references to anything outside it. Names of tables are escaped, and the page's security policy
allows no script and no style but its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from importlib.resources import files
from typing import Final

from styx.gateway.docs_page import STYLE, security_policy
from styx.query.relations import Table

ROWS_SHOWN: Final = 1_000
"""Of a result; a query that gives more is refused, which the page says."""
_SCRIPT: Final = (files("styx.replica") / "sql.js").read_text("utf-8")
_STYLE: Final = STYLE + (files("styx.replica") / "sql.css").read_text("utf-8")
CONTENT_SECURITY_POLICY: Final = security_policy(_STYLE, _SCRIPT)


def sql_page(tables: Sequence[Table], note: str, rows_max: int) -> str:
    """The page as HTML. `note` says whose tables these are, and how old. Results have at most `rows_max` rows."""
    items = "".join(map(_table, tables))
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>SQL</title>'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<style>{_STYLE}</style></head><body>"
        f'<header><h1>SQL</h1><p>{escape(note)} Machine-readable: <a href="v1/sql">tables</a>.</p></header>'
        f'<main><form data-rows="{min(ROWS_SHOWN, rows_max)}"><textarea name="sql" rows="6" spellcheck="false" '
        'required aria-label="query"></textarea><button>Run</button><output aria-live="polite"></output></form>'
        f'<div class="rows"><table></table></div><h2>Tables</h2><ul>{items}</ul></main>'
        f"<script>{_SCRIPT}</script></body></html>\n"
    )


def _table(table: Table) -> str:
    columns = ", ".join(f"{escape(name)} <i>{escape(kind)}</i>" for name, kind in table.columns)
    return f"<li><code>{escape(table.schema)}.{escape(table.name)}</code> ({columns})</li>"
