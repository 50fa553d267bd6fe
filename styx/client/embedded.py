"""The embedded client: an engine in the caller's process, durable if it has a directory. Requests touch no socket.

The blocking one, for programs without an event loop such as Flask and Django, has the engine on a thread of its own.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, Self, TypeVar

from styx.client.base import (
    Client,
    FunctionLike,
    KeyLike,
    OperatorLike,
    TableLike,
    check_idempotency_key,
    check_key,
    check_timeout,
    function_name,
    not_open,
    operator_name,
    rejected,
)
from styx.client.changes import ChangeReader, steps_of
from styx.client.events import EventReader, reader_of
from styx.client.home import Home
from styx.client.list_pages import list_page
from styx.client.listing import page_of
from styx.client.load import Chunk, LoadTarget, chunk_bytes_max, split_pair
from styx.client.loaded import RowsOf, what_is_loaded
from styx.client.sync import SyncClient
from styx.embedded_engine.engine import EmbeddedEngine
from styx.embedded_engine.options import N_SLOTS_DEFAULT, SNAPSHOT_SECONDS_DEFAULT
from styx.errors import InTransactionError, RequestRejected
from styx.host.waiters import fail
from styx.messages import Reply
from styx.model.app import App
from styx.model.bulk_load import encode_pair
from styx.model.changes import checked_after, followed_table
from styx.model.entity_list import Listing, ListPage, slots_listed
from styx.model.event import Event
from styx.model.freshness import AT, Freshness
from styx.model.function_spec import LIST_FUNCTION, READ_FUNCTION
from styx.model.limits import TIMEOUT_SECONDS_DEFAULT, Limits
from styx.model.partition_function import PARTITIONS_SUFFIX
from styx.model.partitioning import Key
from styx.model.request import encode_arguments
from styx.model.signature import NO_ARGUMENTS
from styx.values.codec import encode_strict

_FROM_THREADS = "styx.embedded_sync(app, data_dir)"

T = TypeVar("T")


def embedded(
    app: App,
    data_dir: str | os.PathLike[str] | None = None,
    *,
    n_slots: int = N_SLOTS_DEFAULT,
    limits: Limits | None = None,
    snapshot_interval: float = SNAPSHOT_SECONDS_DEFAULT,
    keep_log: bool = False,
    accept_changed_replay: bool = False,
) -> EmbeddedClient:
    """A client with an engine of its own; use it as `async with styx.embedded(app) as client`.

    `data_dir`: where the engine keeps its log and snapshots; opening it again goes on where it was. None: in memory.
    `n_slots` is fixed for the life of a directory. `snapshot_interval` in seconds. `keep_log`: never release records.
    `accept_changed_replay`: run what was recorded before a crash on `app` even if other code ran it, and log each reply
    that would be another one.

    Entering raises `DataDirectoryInUse`, `ConfigurationError` if the directory is another app's, has another `n_slots`,
    or has entities that `app` would not find, and `EngineFailed` if what is in it is damaged, or if `app` would answer
    otherwise than the code that ran before a crash.
    """
    return EmbeddedClient(
        EmbeddedEngine(
            app,
            data_dir,
            n_slots=n_slots,
            limits=limits,
            snapshot_interval=snapshot_interval,
            keep_log=keep_log,
            accept_changed_replay=accept_changed_replay,
        )
    )


def embedded_sync(
    app: App,
    data_dir: str | os.PathLike[str] | None = None,
    *,
    n_slots: int = N_SLOTS_DEFAULT,
    limits: Limits | None = None,
    snapshot_interval: float = SNAPSHOT_SECONDS_DEFAULT,
    keep_log: bool = False,
) -> SyncEmbeddedClient:
    """As `styx.embedded`, blocking and safe to share among threads: `with styx.embedded_sync(app) as client`.

    Or `open()` it where it is first needed, as a web server's process does; then it is closed when the process ends. A
    data directory has one engine, so it is one process that serves: of several, all but the first one raise
    `DataDirectoryInUse`.

    Raises `ConfigurationError` for options that are wrong. Entering raises what `styx.embedded` raises.
    """
    make = partial(
        embedded,
        app,
        data_dir,
        n_slots=n_slots,
        limits=limits,
        snapshot_interval=snapshot_interval,
        keep_log=keep_log,
    )
    make()  # a wrong option fails here rather than on the client's thread
    return SyncEmbeddedClient(make)


class EmbeddedClient(Client):
    """The client of `engine`, which starts and ends with it.

    Belongs to the event loop it was entered on; elsewhere its methods raise `ConfigurationError` and send nothing.
    """

    def __init__(self, engine: EmbeddedEngine) -> None:
        self.engine = engine
        self._home: Home | None = None

    async def __aenter__(self) -> Self:
        await self.engine.start()
        self._home = Home()
        return self

    async def close(self) -> None:
        """Finishes requests in flight, takes a snapshot and lets go of the directory; closing twice is harmless."""
        if self._home is not None:
            self._home.check(_FROM_THREADS)
            await self.engine.close()

    def crash(self) -> None:
        """Ends the engine as a power cut would; opening its directory again recovers. The client is of no use then."""
        if self._home is not None:
            self.engine.crash()

    def submit(
        self,
        operator: OperatorLike,
        key: KeyLike,
        function: FunctionLike,
        *args: Any,
        timeout: float = TIMEOUT_SECONDS_DEFAULT,
        idempotency_key: str | None = None,
    ) -> Awaitable[Reply]:
        """As `Client.submit`; when too many are under way, it waits its turn."""
        if timeout != TIMEOUT_SECONDS_DEFAULT:
            check_timeout(timeout)
        if self._home is None:
            raise not_open("async with styx.embedded(app)")
        self._home.check(_FROM_THREADS)
        engine = self.engine
        try:
            request = engine.maker.make(
                operator_name(operator),
                key if type(key) is str or type(key) is int else check_key(operator, key),
                function_name(function),
                encode_arguments(args) if args else NO_ARGUMENTS,
                check_idempotency_key(idempotency_key),
            )
            return engine.submit(request, timeout)
        except (InTransactionError, RequestRejected) as error:
            future: asyncio.Future[Reply] = asyncio.get_running_loop().create_future()
            if isinstance(error, ConnectionError):
                fail(future, error)
            else:
                future.set_result(rejected(error))
            return future

    @property
    def epoch(self) -> int:
        """As `Reading.epoch`; it counts what anybody in this process was answered."""
        return self._epoch if self._home is None else max(self._epoch, self.engine.reads.answered)

    async def _read_outside(
        self, operator: Any, key: Any, function: Any, args: tuple[Any, ...], wanted: Freshness, seconds: float
    ) -> Reply:
        check_timeout(seconds)
        if self._home is None:
            raise not_open("async with styx.embedded(app)")
        self._home.check(_FROM_THREADS)
        engine = self.engine
        name = READ_FUNCTION if function is None else function_name(function)
        arguments = encode_arguments(args) if args else NO_ARGUMENTS
        try:
            request = engine.maker.make(operator_name(operator), check_key(operator, key), name, arguments)
            return await engine.read_reply(request, wanted, seconds)
        except (InTransactionError, RequestRejected) as error:
            if isinstance(error, ConnectionError):
                raise
            return rejected(error)

    async def _list_page(self, wanted: Listing, freshness: Freshness, seconds: float) -> ListPage:
        check_timeout(seconds)
        engine, asked = self.engine, wanted.operator + PARTITIONS_SUFFIX

        async def ask(number: int, arguments: tuple[Any, ...], at: int | None) -> tuple[Any, int]:
            each = freshness if at is None else Freshness(AT, at=at)
            reply = await self._read_outside(asked, number, LIST_FUNCTION, arguments, each, seconds)
            return reply.unwrap(), reply.epoch

        try:
            slots = slots_listed(engine.app.operator(wanted.operator), engine.n_slots)
            async with asyncio.timeout(seconds):
                return page_of(await list_page(ask, slots, wanted, freshness.at))
        except InTransactionError as error:
            raise RequestRejected(error.code, str(error)) from None
        except TimeoutError:
            raise TimeoutError("the listing has not ended in time; nothing was changed") from None

    def _known_app(self) -> App:
        return self.engine.app

    def check_home(self) -> None:
        """Raises `ConfigurationError` off the event loop that it was opened on; fine if it is not open."""
        if self._home is not None:
            self._home.check(_FROM_THREADS)

    def load_target(self, operator: OperatorLike | RowsOf, replace: bool, timeout: float) -> LoadTarget:
        """As `Client.load_target`: chunks by slot, straight into the engine."""
        if self._home is None:
            raise not_open("async with styx.embedded(app)")
        self._home.check(_FROM_THREADS)
        return _EngineTarget(self.engine, operator, replace, timeout)

    def events(self, event: Event[Any] | str, *, after: str | None = None, follow: bool = True) -> EventReader:
        """As `Client.events`."""
        if self._home is None:
            raise not_open("async with styx.embedded(app)")
        self._home.check(_FROM_THREADS)
        return reader_of(self.engine.events, self.engine.app, event, after, follow)

    def changes(
        self, operator: OperatorLike, table: TableLike | None = None, *, from_epoch: int | None = None
    ) -> ChangeReader:
        """As `Client.changes`."""
        if self._home is None:
            raise not_open("async with styx.embedded(app)")
        self._home.check(_FROM_THREADS)
        engine = self.engine
        name = engine.app.operator(operator_name(operator)).name
        wanted, after = followed_table(engine.app, name, table), checked_after(from_epoch)
        return ChangeReader(lambda behind: steps_of(engine.changes, engine.app, name, wanted, behind), after)

    def entity(self, operator: OperatorLike, key: KeyLike) -> Any:
        """An entity's committed state, decoded, None if it has none: for tests and tools, not for functions."""
        return self.engine.entity(operator_name(operator), key)

    def rows(self, table: TableLike, key: KeyLike) -> list[Any]:
        """An entity's committed rows in a table, decoded, in order of their primary keys: for tests and tools.

        Looks at all rows of the entity's slot.
        """
        return self.engine.rows(table, key)

    def state(self) -> dict[tuple[str, Any], Any]:
        """All entities' committed state by (operator, key), and all rows by (full name of the table, key), decoded: for
        tests of small states. The key of a row is its entity's, flat, and its primary key.

        What belongs to operators and tables that the app does not have is left out, and what the engine keeps of rows
        elsewhere: entries of indexes over the app, groups over a partition or the app.
        """
        return self.engine.decoded_state()


class _EngineTarget(LoadTarget):
    """Nothing is sent twice: a reply is lost only with the engine."""

    def __init__(self, engine: EmbeddedEngine, operator: OperatorLike | RowsOf, replace: bool, timeout: float) -> None:
        wanted = operator if isinstance(operator, RowsOf) else operator_name(operator)
        loaded = self._loaded = what_is_loaded(wanted, engine.app, encode_strict)
        declared = loaded.declared
        assert declared is not None, "the app was asked"
        self.operator = loaded.name
        self.bytes_max = chunk_bytes_max(engine.limits)
        self._engine = engine
        self._declared = declared
        self._n_slots = engine.n_slots
        self._replace = replace
        self._timeout = timeout

    def place(self, pair: Any) -> tuple[int, Key, bytes]:
        key, value = pair if type(pair) is tuple and len(pair) == 2 else split_pair(pair)
        declared, n_slots = self._declared, self._n_slots
        checked = declared.key_type.check(key, declared.name)
        encoded = encode_pair(checked, self._loaded.encoded(checked, value))
        return declared.slot_of(checked, n_slots), checked, encoded

    async def send(self, chunk: Chunk) -> None:
        engine = self._engine
        arguments = self._loaded.arguments(chunk.pairs, self._replace)
        request = engine.maker.make(self._declared, chunk.keys[0], self._loaded.function, arguments)
        (await engine.submit(request, self._timeout)).unwrap()


class SyncEmbeddedClient(SyncClient[EmbeddedClient]):
    """An `EmbeddedClient` for any thread."""

    def entity(self, operator: OperatorLike, key: KeyLike) -> Any:
        """As `EmbeddedClient.entity`."""
        return self._start(_on_loop(partial(self._client.entity, operator, key))).result()

    def rows(self, table: TableLike, key: KeyLike) -> list[Any]:
        """As `EmbeddedClient.rows`."""
        return self._start(_on_loop(partial(self._client.rows, table, key))).result()

    def state(self) -> dict[tuple[str, Any], Any]:
        """As `EmbeddedClient.state`."""
        return self._start(_on_loop(self._client.state)).result()

    def crash(self) -> None:
        """As `EmbeddedClient.crash`; close it all the same."""
        self._start(_on_loop(self._client.crash)).result()


async def _on_loop(function: Callable[[], T]) -> T:
    return function()
