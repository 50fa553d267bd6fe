"""The store in memory, for engines without a data directory and for tests: it ends with its process."""

from __future__ import annotations

import builtins

from styx.store.base import NotFound, check_name


class MemoryStore:
    """A `Store` in a dictionary."""

    def __init__(self) -> None:
        self._objects: dict[str, bytes] = {}

    def put(self, name: str, data: bytes) -> None:
        check_name(name)
        self._objects[name] = bytes(data)

    def put_new(self, name: str, data: bytes) -> bool:
        check_name(name)
        # One step of the interpreter, so that of several threads one stores.
        return self._objects.setdefault(name, bytes(data)) == data

    def get(self, name: str) -> bytes:
        check_name(name)
        try:
            return self._objects[name]
        except KeyError:
            raise NotFound(name, "memory") from None

    def get_range(self, name: str, start: int, size: int) -> bytes:
        return self.get(name)[start : start + size]

    def list(self, prefix: str) -> builtins.list[str]:
        # Copied first: another thread may put meanwhile.
        return sorted(name for name in tuple(self._objects) if name.startswith(prefix))

    def delete(self, name: str) -> None:
        check_name(name)
        self._objects.pop(name, None)
