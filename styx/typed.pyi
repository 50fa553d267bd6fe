"""What type checkers see as `styx.Operator` and `styx.Context`: the same classes, with the types of keys and states.

There is no such module: at run time both are the plain classes, which only take the brackets. `Untyped` stands for a
state without a declared type, and for a context without brackets: then everything may be stored, as it is untyped.
"""

from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, Concatenate, Generic, ParamSpec, Protocol, overload

from typing_extensions import TypeVar

from styx.model.context import Context as _Context
from styx.model.entity_handle import EntityOfContext, EntityReference
from styx.model.function_spec import UserFunction
from styx.model.operator import Operator as _Operator

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
    def register(self, *, read_only: bool = False) -> Registering[K, T]: ...
    def __getitem__(self, key: K) -> EntityReference[K, T]: ...

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
