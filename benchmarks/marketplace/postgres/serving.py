"""The PostgreSQL line as a deployment for the driver: a server that runs, and the application in uvicorn's processes in
front of it.
"""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from typing import Final, NamedTuple

from benchmarks.driver.deployment.base import Deployment
from benchmarks.marketplace.postgres.checking_out import CHECKOUT_VARIABLE
from benchmarks.reference.fastapi_deployment import Served, fastapi
from benchmarks.reference.postgres_server import PostgresServer

APPLICATION: Final = "benchmarks.marketplace.postgres.application:make_app"
SETTINGS: Final = {
    # Locks of rows, not of whole pages or tables: a page's lock is in the way of the neighbours.
    "max_pred_locks_per_transaction": "1024",
    "max_pred_locks_per_page": "256",
    "max_pred_locks_per_relation": "10000",
}
"""Of the server, for SERIALIZABLE with small rows; beside those of every server here."""


class Shape(NamedTuple):
    """The application's processes, the connections of all of them to the database, and the form of a checkout, a name
    in `FORMS`.
    """

    workers: int
    connections: int
    checkout: str = "function"


def served(server: PostgresServer, shape: Shape) -> AbstractAsyncContextManager[Deployment]:
    """In front of a server with filled tables. Raises `ChildFailed`."""
    environment, facts = {CHECKOUT_VARIABLE: shape.checkout}, {"checkout": shape.checkout}
    return fastapi(server, Served(APPLICATION, shape.workers, shape.connections, environment, facts))
