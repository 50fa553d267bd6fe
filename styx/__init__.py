"""Transactional stateful functions: every request is one serializable transaction, exactly once.

Public names only; whatever needs more than the standard library's basics is imported when it is first used, so that
`import styx` stays cheap.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from styx.native import form as _form  # noqa: F401 - first: others are imported in the form that it finds

# isort: split
from styx.errors import (
    ConfigurationError,
    EngineFailed,
    KeyExists,
    LoadFailed,
    NotSent,
    OutcomeUnknown,
    RequestRejected,
    SnapshotTooOld,
    StyxError,
    TransactionAborted,
)
from styx.messages import Reply, ReplyError
from styx.model.agenda import Retry
from styx.model.app import App
from styx.model.bulk_load import LoadReport
from styx.model.dead_list import DeadCall, DeadCallsPage
from styx.model.entity_list import ListEntry, ListPage
from styx.model.event import Event
from styx.model.event_seen import EventSeen
from styx.model.graph import Graph
from styx.model.ingest import Ingest, IngestRecord
from styx.model.inlet import Inlet
from styx.model.kept_event import KeptEvent
from styx.model.limits import Limits
from styx.model.row_page import Page
from styx.relational.conditions import above, at_least, at_most, below, between, prefix
from styx.relational.declarations import Check, Index, Ref
from styx.relational.tumbling import Tumbling
from styx.version import __version__

if TYPE_CHECKING:
    from styx import errors as errors
    from styx.client.connect import connect, connect_sync
    from styx.client.embedded import embedded, embedded_sync
    from styx.gateway.mounted import asgi
    from styx.typed import Context, Operator, PartitionContext, Rows, Table

else:
    from styx.model.context import Context
    from styx.model.operator import Operator
    from styx.model.partition_context import PartitionContext
    from styx.model.rows import Rows
    from styx.relational.table import Table

__all__ = [
    "App",
    "Check",
    "ConfigurationError",
    "Context",
    "DeadCall",
    "DeadCallsPage",
    "EngineFailed",
    "Event",
    "EventSeen",
    "Graph",
    "Index",
    "Ingest",
    "IngestRecord",
    "Inlet",
    "KeptEvent",
    "KeyExists",
    "Limits",
    "ListEntry",
    "ListPage",
    "LoadFailed",
    "LoadReport",
    "NotSent",
    "Operator",
    "OutcomeUnknown",
    "Page",
    "PartitionContext",
    "Ref",
    "Reply",
    "ReplyError",
    "RequestRejected",
    "Retry",
    "Rows",
    "SnapshotTooOld",
    "StyxError",
    "Table",
    "TransactionAborted",
    "Tumbling",
    "__version__",
    "above",
    "asgi",
    "at_least",
    "at_most",
    "below",
    "between",
    "connect",
    "connect_sync",
    "embedded",
    "embedded_sync",
    "prefix",
]


if not TYPE_CHECKING:  # who checks types would take any name for one of ours

    def __getattr__(name: str) -> Any:
        if name == "embedded":
            from styx.client.embedded import embedded

            return embedded
        if name == "embedded_sync":
            from styx.client.embedded import embedded_sync

            return embedded_sync
        if name == "asgi":
            try:
                from styx.gateway.mounted import asgi
            except ImportError as error:
                from styx.process.extras import lacking

                raise ConfigurationError(lacking("styx.asgi", error.name, "gateway")) from None

            return asgi
        if name in ("connect", "connect_sync"):
            from styx.client import connect

            return getattr(connect, name)
        raise AttributeError(f"module 'styx' has no attribute {name!r}")
