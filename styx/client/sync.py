"""The blocking client: any client, driven by an event loop on a thread of its own. It has no logic about requests.

That thread is not a process's copy: a fork of the process that opened a client is refused, before anything is sent.
"""

from __future__ import annotations

import asyncio
import atexit
import contextlib
import os
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from types import TracebackType
from typing import TYPE_CHECKING, Any, Concatenate, Generic, ParamSpec, Self, TypeVar, overload

from styx.client.base import (
    Client,
    EventLike,
    FunctionLike,
    KeyLike,
    OperatorLike,
    Pairs,
    RemoteClient,
    TableLike,
    check_timeout,
    not_open,
)
from styx.client.home import check_process
from styx.client.sync_changes import SyncChangeReader
from styx.client.sync_reader import SyncReader
from styx.client.sync_reading import SyncReading
from styx.client.typed_results import typed_result, typed_rows
from styx.messages import Reply
from styx.model.bulk_load import LoadReport
from styx.model.dead_list import DEAD_CALLS_DEFAULT, DeadCallsPage
from styx.model.entity_handle import EntityReference, entity_of, positional
from styx.model.entity_read import state_in
from styx.model.event import Event
from styx.model.event_seen import EventSeen
from styx.model.limits import TIMEOUT_SECONDS_DEFAULT

if TYPE_CHECKING:
    from styx.typed import Operator

K = TypeVar("K")
P = ParamSpec("P")
R = TypeVar("R")
C = TypeVar("C", bound=Client)
T = TypeVar("T")


class SyncClient(SyncReading, Generic[C]):
    """The client that `make` returns, blocking and with the same names. Safe to share among threads.

    Use it as `with`; or `open` it where it is first needed, and it is closed when the interpreter ends. Everything is
    as in `Client`, save that `submit` returns a `concurrent.futures.Future`.
    """

    def __init__(self, make: Callable[[], C]) -> None:
        self._make = make
        self._opening = threading.Lock()
        self._opened: _Opened[C] | None = None

    def open(self) -> Self:
        """Opens it, unless it is open, and returns it; raises what entering the client raises.

        For programs that cannot use `with`, such as a module whose client each process of a web server opens.
        """
        with self._opening:
            opened = self._opened
            if opened is None:
                self._opened = _Opened(self._make())
                atexit.register(self.close)
            else:
                check_process(opened.pid)
        return self

    def submit(
        self,
        operator: OperatorLike,
        key: KeyLike,
        function: FunctionLike,
        *args: Any,
        timeout: float = TIMEOUT_SECONDS_DEFAULT,
        idempotency_key: str | None = None,
    ) -> Future[Reply]:
        """Sends a request without waiting; the future's `result()` gives its `Reply`."""
        check_timeout(timeout)
        return self._start(
            self._client.request(operator, key, function, *args, timeout=timeout, idempotency_key=idempotency_key)
        )

    def request(
        self,
        operator: OperatorLike,
        key: KeyLike,
        function: FunctionLike,
        *args: Any,
        timeout: float = TIMEOUT_SECONDS_DEFAULT,
        idempotency_key: str | None = None,
    ) -> Reply:
        """The request's `Reply`, as `Client.request`."""
        return self.submit(operator, key, function, *args, timeout=timeout, idempotency_key=idempotency_key).result()

    @overload
    def call(
        self,
        operator: Operator[K, Any],
        key: K,
        function: Callable[Concatenate[Any, P], Coroutine[Any, Any, R]],
        *args: P.args,
        **named: P.kwargs,
    ) -> R: ...

    @overload
    def call(
        self,
        operator: OperatorLike,
        key: KeyLike,
        function: Callable[..., Coroutine[Any, Any, R]],
        *args: Any,
        timeout: float,
        idempotency_key: str | None = None,
    ) -> R: ...

    @overload
    def call(
        self,
        operator: OperatorLike,
        key: KeyLike,
        function: Callable[..., Coroutine[Any, Any, R]],
        *args: Any,
        idempotency_key: str | None,
    ) -> R: ...

    @overload
    def call(
        self,
        operator: OperatorLike,
        key: KeyLike,
        function: str,
        *args: Any,
        timeout: float = TIMEOUT_SECONDS_DEFAULT,
        idempotency_key: str | None = None,
    ) -> Any: ...

    def call(  # type: ignore[misc] # a function's parameter may be called as one of ours
        self,
        operator: Any,
        key: Any,
        function: Any,
        *args: Any,
        timeout: float = TIMEOUT_SECONDS_DEFAULT,
        idempotency_key: str | None = None,
        **named: Any,
    ) -> Any:
        """The function's result, as `Client.call`."""
        reply = self.request(
            operator,
            key,
            function,
            *positional(function, args, named),
            timeout=timeout,
            idempotency_key=idempotency_key,
        )
        return typed_result(function, reply.unwrap())

    @overload
    def at(self, operator: EntityReference[Any, Any], **options: Any) -> EntityOfSyncClient: ...

    @overload
    def at(self, operator: Operator[K, Any], key: K, **options: Any) -> EntityOfSyncClient: ...

    @overload
    def at(self, operator: str, key: KeyLike, **options: Any) -> EntityOfSyncClient: ...

    def at(self, operator: Any, key: Any = None, **options: Any) -> EntityOfSyncClient:
        """As `Client.at`."""
        return EntityOfSyncClient(self, *entity_of(operator, key), options)

    def load(
        self,
        operator: OperatorLike,
        pairs: Pairs,
        *,
        replace: bool = False,
        timeout: float = TIMEOUT_SECONDS_DEFAULT,
    ) -> LoadReport:
        """As `Client.load`; `pairs` is iterated on the client's own thread."""
        check_timeout(timeout)
        return self._start(self._client.load(operator, pairs, replace=replace, timeout=timeout)).result()

    def load_rows(
        self,
        table: TableLike,
        pairs: Pairs,
        *,
        replace: bool = False,
        timeout: float = TIMEOUT_SECONDS_DEFAULT,
    ) -> LoadReport:
        """As `Client.load_rows`; `pairs` is iterated on the client's own thread."""
        check_timeout(timeout)
        return self._start(self._client.load_rows(table, pairs, replace=replace, timeout=timeout)).result()

    def read_rows(self, table: TableLike, key: KeyLike, *, timeout: float = TIMEOUT_SECONDS_DEFAULT) -> Reply:
        """As `Client.read_rows`."""
        check_timeout(timeout)
        return self._start(self._client.read_rows(table, key, timeout=timeout)).result()

    def dead_calls(
        self,
        operator: OperatorLike,
        *,
        key: KeyLike | None = None,
        after: str | None = None,
        first: int = DEAD_CALLS_DEFAULT,
        timeout: float = TIMEOUT_SECONDS_DEFAULT,
    ) -> DeadCallsPage:
        """As `Client.dead_calls`."""
        check_timeout(timeout)
        found = self._client.dead_calls(operator, key=key, after=after, first=first, timeout=timeout)
        return self._start(found).result()

    def replay_dead_call(
        self, operator: OperatorLike, call_id: str, *, timeout: float = TIMEOUT_SECONDS_DEFAULT
    ) -> bool:
        """As `Client.replay_dead_call`."""
        check_timeout(timeout)
        return self._start(self._client.replay_dead_call(operator, call_id, timeout=timeout)).result()

    def drop_dead_call(self, operator: OperatorLike, call_id: str, *, timeout: float = TIMEOUT_SECONDS_DEFAULT) -> bool:
        """As `Client.drop_dead_call`."""
        check_timeout(timeout)
        return self._start(self._client.drop_dead_call(operator, call_id, timeout=timeout)).result()

    def publish(
        self,
        event: EventLike,
        value: Any,
        *,
        timeout: float = TIMEOUT_SECONDS_DEFAULT,
        idempotency_key: str | None = None,
    ) -> Reply:
        """Publishes an event that comes from outside, as `Client.publish`."""
        check_timeout(timeout)
        publishing = self._client.publish(event, value, timeout=timeout, idempotency_key=idempotency_key)
        return self._start(publishing).result()

    def events(self, event: Event[Any] | str, *, after: str | None = None, follow: bool = True) -> SyncEventReader:
        """As `Client.events`: an iterator, for `for` loops; each step waits for the next event."""
        opened = self._open_here
        return SyncEventReader(lambda: opened.client.events(event, after=after, follow=follow), self._start)

    def changes(
        self, operator: OperatorLike, table: TableLike | None = None, *, from_epoch: int | None = None
    ) -> SyncChangeReader:
        """As `Client.changes`: an iterator, for `for` loops; each step waits for the next epoch with changes."""
        client = self._open_here.client
        return SyncChangeReader(lambda: client.changes(operator, table, from_epoch=from_epoch), self._start)

    def close(self) -> None:
        """Closes the client and ends its thread; closing twice is harmless. A fork of its process does nothing."""
        with self._opening:
            opened = self._opened
            if opened is None or opened.pid != os.getpid():
                return
            self._opened = None
            atexit.unregister(self.close)
        opened.close()

    @property
    def _client(self) -> C:
        """The client that is driven; raises `ConfigurationError` if it is not open in this process."""
        return self._open_here.client

    @property
    def _open_here(self) -> _Opened[C]:
        opened = self._opened
        if opened is None:
            raise not_open("with")
        check_process(opened.pid)
        return opened

    def _start(self, coroutine: Coroutine[Any, Any, T]) -> Future[T]:
        """Runs it on the client's own thread."""
        try:
            opened = self._open_here
        except BaseException:
            coroutine.close()
            raise
        try:
            return opened.thread.start(coroutine)
        except RuntimeError:
            # Another thread has closed it at this moment.
            raise not_open("with") from None

    def __enter__(self) -> Self:
        return self.open()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()


class SyncRemoteClient(SyncClient[RemoteClient]):
    """The blocking client of a deployment elsewhere."""

    def entity(self, operator: OperatorLike, key: KeyLike, *, timeout: float = TIMEOUT_SECONDS_DEFAULT) -> Any:
        """One entity's state, None if it has none, as `RemoteClient.entity`."""
        return state_in(self.read(operator, key, timeout=timeout))

    def rows(self, table: TableLike, key: KeyLike, *, timeout: float = TIMEOUT_SECONDS_DEFAULT) -> list[Any]:
        """One entity's rows in a table, as `RemoteClient.rows`."""
        return typed_rows(table, self.read_rows(table, key, timeout=timeout).unwrap())


class _Opened(Generic[C]):
    """An open client and the thread that drives it."""

    def __init__(self, client: C) -> None:
        self.client = client
        self.pid = os.getpid()
        self.thread = LoopThread("styx-client")
        try:
            self.thread.start(client.__aenter__()).result()
        except BaseException:
            self.thread.close()
            raise

    def close(self) -> None:
        """Closes the client, and ends the thread even if that fails; raises the client's error."""
        try:
            self.thread.start(self.client.close()).result()
        finally:
            self.thread.close()


class EntityOfSyncClient:
    """An entity that a blocking client calls."""

    __slots__ = ("_client", "_key", "_operator", "_options")

    def __init__(self, client: SyncClient[Any], operator: Any, key: Any, options: dict[str, Any]) -> None:
        self._client = client
        self._operator = operator
        self._key = key
        self._options = options

    @overload
    def call(
        self, function: Callable[Concatenate[Any, P], Coroutine[Any, Any, R]], *args: P.args, **named: P.kwargs
    ) -> R: ...

    @overload
    def call(self, function: str, *args: Any) -> Any: ...

    def call(self, function: Any, *args: Any, **named: Any) -> Any:
        """As `SyncClient.call`."""
        return self._client.call(
            self._operator, self._key, function, *positional(function, args, named), **self._options
        )


class SyncEventReader(SyncReader[EventSeen]):
    """The events of one kind, one by one, as `EventReader` gives them."""


class LoopThread:
    """An event loop on a thread, from its making to `close`; the interpreter's end does not wait for it.

    A fork of the process has the object without the thread; then no method waits, not even when the object is
    collected.
    """

    def __init__(self, name: str) -> None:
        started: Future[tuple[asyncio.AbstractEventLoop, asyncio.Event]] = Future()
        self._thread = threading.Thread(target=_run, args=(started,), name=name, daemon=True)
        self._thread.start()
        self._loop, self._stop = started.result()

    def start(self, coroutine: Coroutine[Any, Any, T]) -> Future[T]:
        """Runs the coroutine there; cancelling the future cancels it. Raises `RuntimeError` after `close`."""
        try:
            return asyncio.run_coroutine_threadsafe(coroutine, self._loop)
        except RuntimeError:
            coroutine.close()
            raise

    def close(self) -> None:
        """Returns when all that was started has ended, and the thread."""
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join()


def _run(started: Future[tuple[asyncio.AbstractEventLoop, asyncio.Event]]) -> None:
    loop = asyncio.new_event_loop()
    try:
        loop.run_until_complete(_serve(started))
        loop.run_until_complete(loop.shutdown_asyncgens())
        # While the interpreter ends it starts no thread any more, and that takes one.
        with contextlib.suppress(RuntimeError):
            loop.run_until_complete(loop.shutdown_default_executor())
    finally:
        loop.close()


async def _serve(started: Future[tuple[asyncio.AbstractEventLoop, asyncio.Event]]) -> None:
    stop = asyncio.Event()
    started.set_result((asyncio.get_running_loop(), stop))
    await stop.wait()
    while left := asyncio.all_tasks() - {asyncio.current_task()}:
        await asyncio.wait(left)
