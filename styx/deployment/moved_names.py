"""The present names of modules that an earlier release wrote into packages under other names.

A stored package refers to modules of styx by name, and outlives the release that packed it.
"""

from __future__ import annotations

from importlib import import_module
from types import ModuleType
from typing import Any, Final

_ROOMS: Final = {
    "styx.model": (
        "app bulk_load context entity_handle entity_read execution function_log function_spec limits operator "
        "partitioning placement signature user_frames waiting"
    ),
    "styx.values": "codec custom_types declared_types reading round_trip settled_types steady_text",
    "styx.process": "extras fsync ports runtime",
}
"""Modules that release 0.1.0 had directly in `styx`, by their present folder."""
_OTHERWISE: Final = {
    "styx.client.base": "client.entity_handle",
    "styx.client.embedded": "client.embedded_sync",
    "styx.embedded_engine.storage": "data_directory",
    "styx.model.execution": "own_generators",
    "styx.model.function_spec": "made_call",
    "styx.model.limits": "patience",
    "styx.model.operator": "migration",
    "styx.model.partitioning": "key_space",
    "styx.native.compiled": "transaction_limits",
    "styx.native.form": "compiled",
    "styx.native.interpreted": "plain_stores",
    "styx.process.memory": "allocator garbage",
    "styx.protocol.frames": "call_spec",
    "styx.values.custom_types": "sets",
}
"""Modules that it had there under other names, by the module that they are now, or are a part of."""
MOVED: Final = {
    **{f"styx.{name}": f"{room}.{name}" for room, names in _ROOMS.items() for name in names.split()},
    **{f"styx.{name}": module for module, names in _OTHERWISE.items() for name in names.split()},
}
"""The present name of each module that has moved, by its earlier one."""


def present_name(module: str) -> str:
    """The module's name in this release."""
    return MOVED.get(module, module)


def with_moved(module: ModuleType) -> ModuleType:
    """`module`; for `styx` a module that also has, as attributes, the modules that were in it."""
    return _STYX if module.__name__ == _STYX.__name__ else module


def _attribute(name: str) -> Any:
    earlier = f"styx.{name}"
    return import_module(MOVED[earlier]) if earlier in MOVED else getattr(import_module("styx"), name)


_STYX: Final = ModuleType("styx")
vars(_STYX).update(__getattr__=_attribute, __package__="styx")
