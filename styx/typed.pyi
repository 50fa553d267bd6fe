"""What type checkers see as `styx.Operator`, `styx.Context`, `styx.Table` and `styx.Rows`: the same classes, with
the types of keys, states and rows.

There is no such module: at run time they are the plain classes, which only take the brackets. `Untyped` stands for a
state without a declared type, and for a context without brackets: then everything may be stored, as it is untyped.
"""

from collections.abc import Awaitable, Callable, Coroutine, Mapping
from datetime import timedelta
from decimal import Decimal
from typing import Any, Concatenate, Generic, Literal, ParamSpec, Protocol, overload

from typing_extensions import TypeVar

from styx.model.agenda import Retry
from styx.model.context import Context as _Context
from styx.model.entity_handle import EntityOfContext, EntityReference
from styx.model.event import Event
from styx.model.function_spec import UserFunction
from styx.model.kept_event import KeptEvent
from styx.model.operator import Operator as _Operator
from styx.model.partition_context import PartitionContext as _PartitionContext
from styx.model.partition_rows import PartitionRows
from styx.model.row_page import Page
from styx.model.rows import Rows as _Rows
from styx.relational.declarations import Check, Index, Ref
from styx.relational.table import Table as _Table
from styx.relational.tumbling import Tumbling

class Untyped: ...

K = TypeVar("K", default=Any)
S = TypeVar("S", default=Untyped)
T = TypeVar("T", default=Any)
D = TypeVar("D")
R = TypeVar("R")
P = ParamSpec("P")
A = TypeVar("A")
B = TypeVar("B")
C = TypeVar("C")
E = TypeVar("E")
RK = TypeVar("RK")
RT = TypeVar("RT")
W = TypeVar("W", default=Any)
V = TypeVar("V")

class Operator(_Operator, Generic[K, T]):
    @overload
    def __init__(
        self: Operator[K, T],
        name: str,
        n_partitions: int | None = None,
        *,
        key_type: type[K],
        state_type: type[T],
        partition_key: Callable[[Any], Any] | None = None,
        migrate: Callable[[Any], Any] | None = None,
        ttl: timedelta | None = None,
    ) -> None: ...
    @overload
    def __init__(
        self: Operator[K, Untyped],
        name: str,
        n_partitions: int | None = None,
        *,
        key_type: type[K],
        state_type: None = None,
        partition_key: Callable[[Any], Any] | None = None,
        migrate: Callable[[Any], Any] | None = None,
        ttl: timedelta | None = None,
    ) -> None: ...
    @overload
    def __init__(
        self: Operator[K, Any],
        name: str,
        n_partitions: int | None = None,
        *,
        key_type: type[K],
        state_type: Any,
        partition_key: Callable[[Any], Any] | None = None,
        migrate: Callable[[Any], Any] | None = None,
        ttl: timedelta | None = None,
    ) -> None: ...
    @overload
    def __init__(
        self: Operator[tuple[A, B], T],
        name: str,
        n_partitions: int | None = None,
        *,
        key_type: tuple[type[A], type[B]],
        state_type: type[T],
        partition_key: Callable[[Any], Any] | None = None,
        migrate: Callable[[Any], Any] | None = None,
        ttl: timedelta | None = None,
    ) -> None: ...
    @overload
    def __init__(
        self: Operator[tuple[A, B], Untyped],
        name: str,
        n_partitions: int | None = None,
        *,
        key_type: tuple[type[A], type[B]],
        state_type: None = None,
        partition_key: Callable[[Any], Any] | None = None,
        migrate: Callable[[Any], Any] | None = None,
        ttl: timedelta | None = None,
    ) -> None: ...
    @overload
    def __init__(
        self: Operator[tuple[A, B], Any],
        name: str,
        n_partitions: int | None = None,
        *,
        key_type: tuple[type[A], type[B]],
        state_type: Any,
        partition_key: Callable[[Any], Any] | None = None,
        migrate: Callable[[Any], Any] | None = None,
        ttl: timedelta | None = None,
    ) -> None: ...
    @overload
    def __init__(
        self: Operator[tuple[A, B, C], T],
        name: str,
        n_partitions: int | None = None,
        *,
        key_type: tuple[type[A], type[B], type[C]],
        state_type: type[T],
        partition_key: Callable[[Any], Any] | None = None,
        migrate: Callable[[Any], Any] | None = None,
        ttl: timedelta | None = None,
    ) -> None: ...
    @overload
    def __init__(
        self: Operator[tuple[A, B, C], Untyped],
        name: str,
        n_partitions: int | None = None,
        *,
        key_type: tuple[type[A], type[B], type[C]],
        state_type: None = None,
        partition_key: Callable[[Any], Any] | None = None,
        migrate: Callable[[Any], Any] | None = None,
        ttl: timedelta | None = None,
    ) -> None: ...
    @overload
    def __init__(
        self: Operator[tuple[A, B, C], Any],
        name: str,
        n_partitions: int | None = None,
        *,
        key_type: tuple[type[A], type[B], type[C]],
        state_type: Any,
        partition_key: Callable[[Any], Any] | None = None,
        migrate: Callable[[Any], Any] | None = None,
        ttl: timedelta | None = None,
    ) -> None: ...
    @overload
    def __init__(
        self: Operator[tuple[A, B, C, E], T],
        name: str,
        n_partitions: int | None = None,
        *,
        key_type: tuple[type[A], type[B], type[C], type[E]],
        state_type: type[T],
        partition_key: Callable[[Any], Any] | None = None,
        migrate: Callable[[Any], Any] | None = None,
        ttl: timedelta | None = None,
    ) -> None: ...
    @overload
    def __init__(
        self: Operator[tuple[A, B, C, E], Untyped],
        name: str,
        n_partitions: int | None = None,
        *,
        key_type: tuple[type[A], type[B], type[C], type[E]],
        state_type: None = None,
        partition_key: Callable[[Any], Any] | None = None,
        migrate: Callable[[Any], Any] | None = None,
        ttl: timedelta | None = None,
    ) -> None: ...
    @overload
    def __init__(
        self: Operator[tuple[A, B, C, E], Any],
        name: str,
        n_partitions: int | None = None,
        *,
        key_type: tuple[type[A], type[B], type[C], type[E]],
        state_type: Any,
        partition_key: Callable[[Any], Any] | None = None,
        migrate: Callable[[Any], Any] | None = None,
        ttl: timedelta | None = None,
    ) -> None: ...
    @overload
    def __init__(
        self: Operator[str, T],
        name: str,
        n_partitions: int | None = None,
        *,
        state_type: type[T],
        partition_key: Callable[[Any], Any] | None = None,
        migrate: Callable[[Any], Any] | None = None,
        ttl: timedelta | None = None,
    ) -> None: ...
    @overload
    def __init__(
        self: Operator[str, Untyped],
        name: str,
        n_partitions: int | None = None,
        *,
        state_type: None = None,
        partition_key: Callable[[Any], Any] | None = None,
        migrate: Callable[[Any], Any] | None = None,
        ttl: timedelta | None = None,
    ) -> None: ...
    @overload
    def __init__(
        self: Operator[str, Any],
        name: str,
        n_partitions: int | None = None,
        *,
        state_type: Any,
        partition_key: Callable[[Any], Any] | None = None,
        migrate: Callable[[Any], Any] | None = None,
        ttl: timedelta | None = None,
    ) -> None: ...
    @overload
    def __init__(
        self: Operator[Any, T],
        name: str,
        n_partitions: int | None = None,
        *,
        key_type: Any,
        state_type: type[T],
        partition_key: Callable[[Any], Any] | None = None,
        migrate: Callable[[Any], Any] | None = None,
        ttl: timedelta | None = None,
    ) -> None: ...
    @overload
    def __init__(
        self: Operator[Any, Untyped],
        name: str,
        n_partitions: int | None = None,
        *,
        key_type: Any,
        state_type: None = None,
        partition_key: Callable[[Any], Any] | None = None,
        migrate: Callable[[Any], Any] | None = None,
        ttl: timedelta | None = None,
    ) -> None: ...
    @overload
    def __init__(
        self: Operator[Any, Any],
        name: str,
        n_partitions: int | None = None,
        *,
        key_type: Any,
        state_type: Any,
        partition_key: Callable[[Any], Any] | None = None,
        migrate: Callable[[Any], Any] | None = None,
        ttl: timedelta | None = None,
    ) -> None: ...
    @overload  # type: ignore[override]
    def register(
        self, func: Callable[Concatenate[Context[K, T], P], Coroutine[Any, Any, R]]
    ) -> Callable[Concatenate[Context[K, T], P], Coroutine[Any, Any, R]]: ...
    @overload
    def register(
        self, func: Callable[Concatenate[Context[Any, Untyped], P], Coroutine[Any, Any, R]]
    ) -> Callable[Concatenate[Context[Any, Untyped], P], Coroutine[Any, Any, R]]: ...
    @overload  # for functions with `**named`
    def register(  # type: ignore[overload-cannot-match]
        self, func: Callable[Concatenate[Context[K, T], ...], Coroutine[Any, Any, R]]
    ) -> Callable[..., Coroutine[Any, Any, R]]: ...
    @overload
    def register(  # type: ignore[overload-cannot-match]
        self, func: Callable[Concatenate[Context[Any, Untyped], ...], Coroutine[Any, Any, R]]
    ) -> Callable[..., Coroutine[Any, Any, R]]: ...
    @overload  # with hints
    def register(
        self, *, read_only: bool = False, local: bool = False, contended: bool = False
    ) -> Registering[K, T]: ...
    def on(  # type: ignore[override]
        self,
        event: Event[V],
        *,
        key: Callable[[V], K | list[Any]] | None = None,
        after_commit: bool = False,
        retry: Retry | None = None,
        ordered_by: Callable[[V], str | int | tuple[str | int, ...]] | None = None,
    ) -> Subscribing[V]: ...
    def cron(self, expression: str, *, key: K, retry: Retry | None = None) -> Registering[K, T]: ...  # type: ignore[override]
    def __getitem__(self, key: K) -> EntityReference[K, T]: ...
    def table(  # type: ignore[override]
        self,
        name: str,
        row_type: type[V],
        *,
        key: str | tuple[str, ...] | list[str],
        indexes: Index | list[Index] | tuple[Index, ...] = (),
        checks: Check | list[Check] | tuple[Check, ...] = (),
        references: Ref | list[Ref] | tuple[Ref, ...] = (),
        auto: Literal["unique", "serial"] | None = None,
        was: str = "",
        migrate: Callable[[Any], V] | None = None,
        ttl: timedelta | Literal["given"] | None = None,
    ) -> Table[V]: ...

class Subscribing(Protocol[V]):
    def __call__(
        self, func: Callable[[Any, V], Coroutine[Any, Any, R]], /
    ) -> Callable[[Any, V], Coroutine[Any, Any, R]]: ...

class Registering(Protocol[RK, RT]):
    @overload
    def __call__(
        self, func: Callable[Concatenate[Context[RK, RT], P], Coroutine[Any, Any, R]], /
    ) -> Callable[Concatenate[Context[RK, RT], P], Coroutine[Any, Any, R]]: ...
    @overload
    def __call__(
        self, func: Callable[Concatenate[Context[Any, Untyped], P], Coroutine[Any, Any, R]], /
    ) -> Callable[Concatenate[Context[Any, Untyped], P], Coroutine[Any, Any, R]]: ...
    @overload  # for functions with `**named`
    def __call__(  # type: ignore[overload-cannot-match]
        self, func: Callable[Concatenate[Context[RK, RT], ...], Coroutine[Any, Any, R]], /
    ) -> Callable[..., Coroutine[Any, Any, R]]: ...
    @overload
    def __call__(  # type: ignore[overload-cannot-match]
        self, func: Callable[Concatenate[Context[Any, Untyped], ...], Coroutine[Any, Any, R]], /
    ) -> Callable[..., Coroutine[Any, Any, R]]: ...

class Context(_Context, Generic[K, S]):
    @property
    def key(self) -> K: ...
    @property
    def state(self) -> Context[K, S]: ...
    @overload  # type: ignore[override]
    def get(self: Context[Any, Untyped], default: Any = None) -> Coroutine[Any, Any, Any]: ...
    @overload
    def get(self) -> Coroutine[Any, Any, S | None]: ...
    @overload
    def get(self, default: S) -> Coroutine[Any, Any, S]: ...
    @overload
    def get(self, default: D) -> Coroutine[Any, Any, S | D]: ...
    @overload
    def put(self: Context[Any, Untyped], value: Any) -> Awaitable[None]: ...
    @overload
    def put(self, value: S) -> Awaitable[None]: ...
    @overload
    def call(
        self,
        operator: Operator[A, Any],
        function_name: Callable[Concatenate[Any, ...], Coroutine[Any, Any, R]],
        key: A | list[Any],
        params: tuple[Any, ...] | list[Any] = (),
    ) -> Coroutine[Any, Any, R]: ...
    @overload
    def call(
        self, operator: _Operator | str, function_name: str, key: Any, params: Any = ()
    ) -> Coroutine[Any, Any, Any]: ...
    @overload
    def call(
        self, operator: str, function_name: UserFunction, key: Any, params: Any = ()
    ) -> Coroutine[Any, Any, Any]: ...
    @overload
    def call_async(
        self,
        operator: Operator[A, Any],
        function_name: UserFunction,
        key: A | list[Any],
        params: tuple[Any, ...] | list[Any] = (),
    ) -> None: ...
    @overload
    def call_async(self, operator: _Operator | str, function_name: str, key: Any, params: Any = ()) -> None: ...
    @overload
    def call_async(self, operator: str, function_name: UserFunction, key: Any, params: Any = ()) -> None: ...
    @overload
    def after_commit(
        self,
        operator: Operator[A, Any],
        function_name: UserFunction,
        key: A | list[Any],
        params: tuple[Any, ...] | list[Any] = (),
        *,
        retry: Retry | None = None,
    ) -> None: ...
    @overload
    def after_commit(
        self,
        operator: _Operator | str,
        function_name: str | UserFunction,
        key: Any,
        params: Any = (),
        *,
        retry: Retry | None = None,
    ) -> None: ...
    @overload
    def after(
        self,
        delay: timedelta,
        operator: Operator[A, Any],
        function_name: UserFunction,
        key: A | list[Any],
        params: tuple[Any, ...] | list[Any] = (),
        *,
        name: str | None = None,
        retry: Retry | None = None,
    ) -> None: ...
    @overload
    def after(
        self,
        delay: timedelta,
        operator: _Operator | str,
        function_name: str | UserFunction,
        key: Any,
        params: Any = (),
        *,
        name: str | None = None,
        retry: Retry | None = None,
    ) -> None: ...
    def emit(self, event: Event[V], value: V, *, key: str | int | tuple[str | int, ...] | None = None) -> None: ...
    @overload
    def rows(self, table: View) -> GroupRows: ...
    @overload
    def rows(self, table: Table[V]) -> Rows[V]: ...
    @overload
    def rows(self, table: Event[V]) -> Rows[KeptEvent[V]]: ...
    @overload
    def find(
        self,
        table: Any,
        index: str,
        *where: Mapping[str, Any],
        size: int,
        after: str | None = None,
        **conditions: Any,
    ) -> Coroutine[Any, Any, Page[tuple[Any, Any]]]: ...
    @overload
    def find(
        self,
        table: Any,
        index: str,
        *where: Mapping[str, Any],
        first: int = 0,
        last: int = 0,
        **conditions: Any,
    ) -> Coroutine[Any, Any, list[tuple[Any, Any]]]: ...
    def group(self, view: Table[V], *values: Any) -> Coroutine[Any, Any, V]: ...
    @overload  # type: ignore[override]
    def at(self, operator: EntityReference[A, B]) -> EntityOfContext: ...
    @overload
    def at(self, operator: Operator[A, Any], key: A) -> EntityOfContext: ...
    @overload
    def at(self, operator: str, key: Any) -> EntityOfContext: ...
    @overload
    def call_external(self, function: Callable[..., Coroutine[Any, Any, R]], *args: Any) -> Coroutine[Any, Any, R]: ...
    @overload
    def call_external(self, function: Callable[..., R], *args: Any) -> Coroutine[Any, Any, R]: ...

class View(Table[Any]): ...
class PartitionView(View): ...

class PartitionContext(_PartitionContext):
    @overload  # type: ignore[override]
    def rows(self, table: PartitionView) -> GroupRows: ...  # type: ignore[overload-overlap]  # it is a table, too
    @overload
    def rows(self, table: _Table | Event[Any]) -> PartitionRows: ...
    @overload
    def rows(self, table: View, *, of: Any) -> GroupRows: ...
    @overload
    def rows(self, table: Event[V], *, of: Any) -> Rows[KeptEvent[V]]: ...
    @overload
    def rows(self, table: _Table, *, of: Any) -> Rows[Any]: ...

class Table(_Table, Generic[W]):
    @overload
    def view(
        self,
        name: str,
        *,
        group_by: str | Tumbling | tuple[str | Tumbling, ...] | list[str | Tumbling] = (),
        where: Callable[[W], Any] | None = None,
        count: bool = True,
        sum: str | tuple[str, ...] | list[str] = (),
        min: str | tuple[str, ...] | list[str] = (),
        max: str | tuple[str, ...] | list[str] = (),
        scope: Literal["partition"],
    ) -> PartitionView: ...
    @overload
    def view(
        self,
        name: str,
        *,
        group_by: str | Tumbling | tuple[str | Tumbling, ...] | list[str | Tumbling] = (),
        where: Callable[[W], Any] | None = None,
        count: bool = True,
        sum: str | tuple[str, ...] | list[str] = (),
        min: str | tuple[str, ...] | list[str] = (),
        max: str | tuple[str, ...] | list[str] = (),
        scope: Literal["entity", "app"] = "entity",
    ) -> View: ...

class Rows(_Rows, Generic[W]):
    @overload  # type: ignore[override]
    def get(self, pk: Any) -> Coroutine[Any, Any, W | None]: ...
    @overload
    def get(self, pk: Any, default: D) -> Coroutine[Any, Any, W | D]: ...
    def find(self, index: str, *values: Any) -> Coroutine[Any, Any, W | None]: ...
    def insert(  # type: ignore[override]
        self, row: W, on_conflict: Literal["keep", "replace"] | None = None, *, ttl: timedelta | None = None
    ) -> Coroutine[Any, Any, W]: ...
    def put(self, row: W, *, ttl: timedelta | None = None) -> Awaitable[None]: ...
    def update(self, pk: Any, **changes: Any) -> Coroutine[Any, Any, W]: ...
    def update_where(  # type: ignore[override]
        self,
        changes: Mapping[str, Any],
        /,
        *where: Mapping[str, Any],
        scan: bool = False,
        by: str | None = None,
        **conditions: Any,
    ) -> Coroutine[Any, Any, list[W]]: ...
    def add(self, pk: Any, **deltas: int | float | Decimal) -> Awaitable[None]: ...
    def append(self, row: W, *, ttl: timedelta | None = None) -> Coroutine[Any, Any, W]: ...
    def delete(self, pk: Any) -> Coroutine[Any, Any, bool]: ...
    def delete_where(
        self, *where: Mapping[str, Any], scan: bool = False, by: str | None = None, **conditions: Any
    ) -> Coroutine[Any, Any, int]: ...
    def select(
        self,
        *where: Mapping[str, Any],
        first: int = 0,
        last: int = 0,
        scan: bool = False,
        by: str | None = None,
        **conditions: Any,
    ) -> Coroutine[Any, Any, list[W]]: ...
    def keys(
        self,
        *where: Mapping[str, Any],
        first: int = 0,
        last: int = 0,
        scan: bool = False,
        by: str | None = None,
        **conditions: Any,
    ) -> Coroutine[Any, Any, list[Any]]: ...
    def count(
        self, *where: Mapping[str, Any], scan: bool = False, by: str | None = None, **conditions: Any
    ) -> Coroutine[Any, Any, int]: ...
    def exists(
        self, *where: Mapping[str, Any], scan: bool = False, by: str | None = None, **conditions: Any
    ) -> Coroutine[Any, Any, bool]: ...
    def pages(
        self,
        *where: Mapping[str, Any],
        size: int = 100,
        after: str | None = None,
        scan: bool = False,
        by: str | None = None,
        **conditions: Any,
    ) -> Coroutine[Any, Any, Page[W]]: ...

class GroupRows(Rows[Any]):
    def get(self, pk: Any, default: Any = ...) -> Coroutine[Any, Any, Any]: ...
