"""`/v1/sql` of an embedded engine, such as `styx dev`: queries over its state at the end of the last closed epoch.

Between two passes of the engine it takes a copy of the tables that have changed: of their dictionaries, which share
keys and values. That, and the making of rows, takes the interpreter from the engine for as long; the queries' processes
take the machine's cores. So it is for development and for small states, and says so. Nothing of it is loaded before the
first request.
"""

from __future__ import annotations

import asyncio
import time
from importlib import import_module
from typing import TYPE_CHECKING, Final

from styx.errors import ConfigurationError
from styx.gateway import status
from styx.http.asgi import Application, Receive, Scope, Send
from styx.query.extra import require
from styx.worker.reads import answered_epoch, closed_epoch

if TYPE_CHECKING:
    from styx.embedded_engine.engine import EmbeddedEngine
    from styx.replica.follower import Moment
    from styx.replica.service import ReplicaService
    from styx.replica.state import EpochState, SlotTable

NOTE: Final = "the tables are those of the running engine, and a query shares its machine: ask a replica in production"
QUERY_MEMORY_MIB: Final = 512
QUERY_SECONDS: Final = 10.0
QUERY_ROWS: Final = 100_000
WAITING: Final = 8
ROWS_BYTES: Final = 512 * 2**20
FILES: Final = 500
PAUSE_SECONDS: Final = 0.001
WAIT_SECONDS_MAX: Final = 10.0


class LiveSql:
    """The ASGI application of `/v1/sql` over `engine`. To be closed, if it was asked or not."""

    def __init__(self, engine: EmbeddedEngine) -> None:
        self._engine = engine
        self._service: ReplicaService | None = None
        self._endpoint: Application | None = None
        self._moments: LiveMoments | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """The ASGI interface."""
        if self._endpoint is None:
            try:
                require("SQL", "duckdb", "pyarrow")
            except ConfigurationError as error:
                await _refuse(status.failure("not_found", status.REJECTED, str(error)), send)
                return
            # On a thread: it takes a second, in which the engine goes on.
            await asyncio.to_thread(import_module, "styx.replica.sql_endpoint")
            self._endpoint = self._endpoint or self._made()
        assert self._moments is not None
        reason = self._engine.unavailable_reason or await self._moments.refresh()
        if reason is not None:
            await _refuse(status.failure("unavailable", "NothingToAsk", reason), send)
            return
        await self._endpoint(scope, receive, send)

    async def close(self) -> None:
        """Ends the processes that wait for queries."""
        if self._service is not None:
            await self._service.close()

    def _made(self) -> Application:
        from styx.query.service import Limits
        from styx.replica.arrow_rows import ArrowRows
        from styx.replica.service import Places, ReplicaService
        from styx.replica.sql_endpoint import SqlEndpoint

        self._moments = LiveMoments(self._engine)
        self._service = ReplicaService(self._moments.now, ArrowRows(ROWS_BYTES, FILES), Places(1, WAITING))
        most = Limits(QUERY_MEMORY_MIB, QUERY_SECONDS, QUERY_ROWS)
        return SqlEndpoint(self._service, most, NOTE)


class LiveMoments:
    """The moments of an engine, taken when they are asked for."""

    def __init__(self, engine: EmbeddedEngine) -> None:
        self._engine = engine
        self._moment: Moment | None = None
        self._epochs: dict[tuple[int, str], int] = {}

    def now(self) -> Moment:
        """The newest that was taken."""
        from styx.replica.service import NothingToAsk

        if self._moment is None:
            raise NothingToAsk("the engine's state has not been looked at")
        return self._moment

    async def refresh(self) -> str | None:
        """Takes one of the last epoch that has closed, in which is all that was answered before; returns why it could
        not.
        """
        worker, least = self._engine.worker, answered_epoch(self._engine.worker)
        ending = time.monotonic() + WAIT_SECONDS_MAX
        while closed_epoch(worker) < least or self._commits_under_way():
            if self._engine.unavailable_reason is not None:
                return self._engine.unavailable_reason
            if time.monotonic() > ending:
                return (
                    f"no moment between two epochs was found in {WAIT_SECONDS_MAX:g} s: the engine is busy; try again"
                )
            await asyncio.sleep(PAUSE_SECONDS)
        before = self._moment
        if before is None or before.state.epoch != closed_epoch(worker):
            self._moment = self._taken(before)
        return None

    def _commits_under_way(self) -> bool:
        """Whether a table has what belongs to an epoch that has not closed."""
        closed, slots = closed_epoch(self._engine.worker), self._engine.worker.slots.values()
        return any(table.epoch > closed for slot in slots for table in slot.state.tables.values())

    def _taken(self, before: Moment | None) -> Moment:
        from styx.query.relations import relations
        from styx.query.schema import of_app
        from styx.replica.follower import Moment

        if before is not None:
            return before._replace(state=self._state(before.state))
        schema = of_app(self._engine.app)
        return Moment(self._state(None), schema, relations(schema))

    def _state(self, before: EpochState | None) -> EpochState:
        """A copy of the tables that have changed since `before`, and those of before that have not."""
        from styx.replica.state import EpochState, SlotTable, is_shown

        worker = self._engine.worker
        slots: dict[int, dict[str, SlotTable]] = {}
        for number, slot in worker.slots.items():
            kept = {} if before is None else before.slots.get(number, {})
            slots[number] = {}
            for name, table in slot.state.tables.items():
                if not is_shown(name) or not len(table):
                    continue
                unchanged = self._epochs.get((number, name)) == table.epoch and name in kept
                slots[number][name] = kept[name] if unchanged else SlotTable((dict(table.at(table.epoch)),), 0)
                self._epochs[number, name] = table.epoch
        return EpochState(closed_epoch(worker), 0, time.time(), slots)


async def _refuse(answer: status.Answer, send: Send) -> None:
    headers = [*answer.headers, (b"content-length", b"%d" % len(answer.body))]
    await send({"type": "http.response.start", "status": answer.status, "headers": headers})
    await send({"type": "http.response.body", "body": answer.body})
