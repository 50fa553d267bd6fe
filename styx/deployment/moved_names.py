"""The present places of modules, and of names in them, that an earlier release wrote into packages under other names.

A stored package refers to styx by the names of modules and of their attributes, and outlives the release that packed
it.
"""

from __future__ import annotations

from functools import partial
from importlib import import_module
from types import ModuleType
from typing import Any, Final

_ROOMS: Final = {
    "styx.model": (
        "app bulk_load context entity_handle entity_read execution function_log function_spec limits migration "
        "operator partitioning placement signature user_frames waiting"
    ),
    "styx.values": "codec custom_types declared_types reading round_trip settled_types steady_text",
    "styx.process": "extras fsync ports runtime",
}
"""Modules that release 0.1.0 had directly in `styx`, by their present folder."""
_OTHERWISE: Final = {
    "styx.client.base": "client.entity_handle",
    "styx.client.embedded": "client.embedded_sync",
    "styx.client.kafka.client": "client.kafka_load",
    "styx.client.sync": "client.loop_thread",
    "styx.embedded_engine.storage": "data_directory",
    "styx.log.sqlite": "log.writer",
    "styx.model.execution": "own_generators",
    "styx.model.function_spec": "made_call",
    "styx.model.limits": "patience",
    "styx.model.partitioning": "key_space",
    "styx.native.compiled": "transaction_limits",
    "styx.native.form": "compiled",
    "styx.native.interpreted": "plain_stores",
    "styx.process.memory": "allocator garbage",
    "styx.protocol.frames": "call_spec",
    "styx.values.custom_types": "sets",
}
"""Modules that it had under other names, by the module that they are now, or are a part of."""
MOVED: Final = {
    **{f"styx.{name}": f"{room}.{name}" for room, names in _ROOMS.items() for name in names.split()},
    **{f"styx.{name}": module for module, names in _OTHERWISE.items() for name in names.split()},
}
"""The present name of each module that has moved, by its earlier one."""
_FROM_LOG: Final = {
    "styx.log.base": "Log LogClosed LogCorrupt LogFailed LogOverloaded LogTruncated Record Stream",
    "styx.log.memory": "MemoryLog",
    "styx.log.sqlite": "SqliteLog",
}
"""Names that the package `styx.log` had, by the module that has them."""
MOVED_ATTRIBUTES: Final = {
    "styx.client.kafka.KafkaClient": "styx.client.kafka.client.KafkaClient",
    "styx.entity_handle.EntityOfClient": "styx.client.base.EntityOfClient",
    "styx.entity_handle.EntityOfSyncClient": "styx.client.sync.EntityOfSyncClient",
    "styx.placement.Placing": "styx.model.operator.Operator",
    "styx.user_frames.DECORATOR_LINES_MAX": "styx.reports.mistakes.DECORATOR_LINES_MAX",
    **{f"styx.log.{name}": f"{module}.{name}" for module, names in _FROM_LOG.items() for name in names.split()},
}
"""The present place of each public name that its module no longer has, by the earlier place."""


def present_name(module: str) -> str:
    """The module's name in this release."""
    return MOVED.get(module, module)


def present_place(module: str, name: str) -> tuple[str, str]:
    """The module that has `name` in this release, and its name there; `name` may have parts, as in `Outer.Inner`."""
    first, dot, rest = name.partition(".")
    place = MOVED_ATTRIBUTES.get(f"{module}.{first}")
    if place is None:
        return present_name(module), name
    present, _, first = place.rpartition(".")
    return present, first + dot + rest


def with_moved(name: str, module: ModuleType) -> ModuleType:
    """`module`, which is imported under `name`; if names have left it, a module that also has these."""
    return _AS_BEFORE.get(name, module)


def _attribute(module: str, name: str) -> Any:
    earlier = f"{module}.{name}"
    if earlier in MOVED:
        return with_moved(earlier, import_module(MOVED[earlier]))
    present, attribute = present_place(module, name)
    return with_moved(earlier, getattr(import_module(present), attribute))


def _as_before(name: str) -> ModuleType:
    module = ModuleType(present_name(name))
    vars(module).update(__getattr__=partial(_attribute, name), __package__=name)
    return module


_AS_BEFORE: Final = {name: _as_before(name) for name in {each.rpartition(".")[0] for each in MOVED | MOVED_ATTRIBUTES}}
