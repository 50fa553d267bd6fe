"""Settings of a workload: a dataclass whose fields carry their help. The command's options are made from it.

    @dataclass(frozen=True)
    class Settings:
        keys: int = setting(10_000, "number of accounts (default %(default)s)")
        wait: bool = setting(False, "wait for the other one")

gives `--keys N` and `--wait`. A field without a help is not an option.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from dataclasses import Field, field, fields
from typing import Any, Final, TypeVar

from styx.errors import ConfigurationError

S = TypeVar("S")

_OPTION: Final = "option"
"""The key in a field's metadata of the further arguments for `add_argument`."""


def setting(
    default: Any, help: str, *, kind: type = int, metavar: str = "N", choices: Iterable[str] | None = None
) -> Any:
    """A field that is an option. `kind` is its type if the default is None. `help` is argparse's, with
    `%(default)s`.
    """
    option: dict[str, Any] = {"help": help}
    if isinstance(default, bool):
        option |= {"action": "store_true"}
    elif choices is not None:
        option |= {"choices": tuple(choices)}
    else:
        option |= {"type": kind if default is None else type(default), "metavar": metavar}
    return field(default=default, metadata={_OPTION: option})


def share(default: float | None, help: str) -> Any:
    """A field from 0 to 1."""
    return setting(default, help, kind=float, metavar="SHARE")


def options_of(settings: type) -> list[Field[Any]]:
    """The fields of a dataclass that are options, in their order."""
    return [each for each in fields(settings) if _OPTION in each.metadata]


def add_options_of(group: argparse._ArgumentGroup, found: Iterable[Field[Any]]) -> None:
    """Adds an option for each of these fields."""
    for each in found:
        group.add_argument(f"--{_words(each.name)}", default=each.default, **each.metadata[_OPTION])


def settings_from(settings: type[S], options: argparse.Namespace, **others: Any) -> S:
    """The settings from parsed options. `others` are the fields that are not options. Raises `ConfigurationError`."""
    return settings(**{each.name: getattr(options, each.name) for each in options_of(settings)}, **others)


def require(holds: bool, message: str) -> None:
    """Raises `ConfigurationError` with the message unless `holds`. Write the condition so that a NaN fails."""
    if not holds:
        raise ConfigurationError(message)


def require_shares(settings: object, example: str, *names: str) -> None:
    """Raises `ConfigurationError` if one of these fields is neither None nor from 0 to 1."""
    for name in names:
        value = getattr(settings, name)
        good = value is None or 0 <= value <= 1
        require(good, f"the share --{_words(name)} is from 0 to 1, such as {example}; got {value}")


def _words(name: str) -> str:
    return name.replace("_", "-")
