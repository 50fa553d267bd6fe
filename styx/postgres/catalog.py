"""What a session asks DuckDB in a client's place: the query with its parameters, and for a query about the catalog, the
shim that makes DuckDB answer as PostgreSQL would (`catalog_views`, `rewriting`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from styx.postgres.catalog_views import ABOUT_CATALOG, prelude
from styx.postgres.commands import Query
from styx.postgres.rewriting import for_duckdb
from styx.postgres.settings import VERSION, Settings
from styx.query.service import Asked, Parameter


class Asker:
    """Makes queries for the service, for one session."""

    def __init__(self, user: str, database: str, pid: int, settings: Settings) -> None:
        self.user = user
        self.database = database
        self.pid = pid
        self.settings = settings
        self.version = VERSION

    def asked(
        self, query: Query, expressions: Mapping[int, str], values: Sequence[Parameter], *, describe: bool = False
    ) -> Asked:
        """The query with `expressions` in the place of its parameters."""
        catalog = any(each.word in ABOUT_CATALOG or each.word.startswith("pg_") for each in query.tokens)
        sql = for_duckdb(query.sql, query.tokens, expressions, catalog=catalog)
        if not catalog:
            return Asked(sql, values, describe)
        words = {each.text.strip('"').lower() for each in query.tokens if each.kind in ("word", "quoted")}
        known = prelude(words, self.user, self.database, self.pid, dict(self.settings.all()))
        return Asked(sql, values, describe, known, catalog=True)
