"""Options that name a store: its URL, and the options of its kind, which are made from the registry of stores.

`endpoint` of `s3` is `--s3-endpoint` and STYX_S3_ENDPOINT; of another store of the same command, such as `--to` of
`styx backup`, it is `--to-s3-endpoint` and STYX_TO_S3_ENDPOINT. Secrets are in the environment only. `StorePlace` opens
the store. A store without options or secrets of its own has those of the store beside it.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Any, TypedDict

from cyclopts import Parameter

from styx.store.stores import STORES, USAGE, StoreKind, StoreOption, kind_of, parse_store_url

if TYPE_CHECKING:
    from styx.store.base import Store, StoreReader


def _variable(which: str, scheme: str, option: StoreOption) -> str:
    return "_".join(filter(None, ("STYX", which, scheme, option.name))).upper()


def _word(which: str, scheme: str, option: StoreOption) -> str:
    return "--" + "-".join(filter(None, (which, scheme, option.name.replace("_", "-"))))


def _declared(which: str) -> type[Any]:
    """The type of all stores' options, for the parser: a dictionary with `s3_endpoint` for `--WHICH-s3-endpoint`."""
    fields = {}
    for scheme, option in ((scheme, each) for scheme, kind in STORES.items() for each in kind.options):
        if option.secret:
            continue
        owner = f" Of --{which}, if not {_word('', scheme, option)}." if which else ""
        parameter = Parameter(
            name=_word(which, scheme, option), help=option.help + owner, env_var=_variable(which, scheme, option)
        )
        fields[f"{scheme}_{option.name}"] = Annotated[str, parameter]
    return TypedDict("_Options", fields, total=False)  # type: ignore[operator, no-any-return]


if TYPE_CHECKING:
    StoreOptions = Mapping[str, str]
    ToOptions = Mapping[str, str]
    FromOptions = Mapping[str, str]
else:
    StoreOptions = Annotated[_declared(""), Parameter(name="*")]
    ToOptions = Annotated[_declared("to"), Parameter(name="*")]
    FromOptions = Annotated[_declared("from"), Parameter(name="*")]

StoreWord = Annotated[str, Parameter(name="--store", help=f"The cluster's: {USAGE}.", env_var="STYX_STORE")]
NO_OPTIONS: StoreOptions = {}
INHERITED = tuple(sorted({f"STYX_{scheme.upper()}_" for scheme, kind in STORES.items() if kind.options}))
"""The beginnings of the options' variables."""


def secrets_help(what: str, which: str = "") -> str:
    """Lines with the variables of each kind's secrets; `what` names the option of the store. No newline at the end."""
    lines = []
    for scheme, kind in STORES.items():
        names = [_variable(which, scheme, option) for option in kind.options if option.secret]
        lines += [f"  {', '.join(names)}    of {what}, if it is {scheme}://"] if names else []
    return "\n".join(lines)


def words_of(options: StoreOptions) -> list[str]:
    """The options as arguments of another command."""
    return [word for name, value in options.items() if value for word in (f"--{name.replace('_', '-')}", value)]


@dataclass(frozen=True)
class StorePlace:
    """The place of a store. `which` is `to` for `--to` and its options. Options and secrets of the store `beside` are
    taken if this one has none of its own.
    """

    url: str
    options: StoreOptions = field(default_factory=dict)
    which: str = ""
    beside: StorePlace | None = None

    def open(self, environment: Mapping[str, str] = os.environ) -> Store:
        """Opens the store. Raises `ConfigurationError` and `OSError`."""
        from styx.store.stores import open_store

        return open_store(self.url, **self.settings(environment))

    def open_to_read(self, environment: Mapping[str, str] = os.environ) -> StoreReader:
        """Opens the store, and changes nothing there. Raises `ConfigurationError` and `OSError`."""
        from styx.store.stores import open_reader

        return open_reader(self.url, **self.settings(environment))

    def settings(self, environment: Mapping[str, str]) -> dict[str, str]:
        """The options and secrets of its kind of store, by their names in the registry. Raises `ConfigurationError` for
        a URL that names no store, and for missing options.
        """
        url = parse_store_url(self.url)
        kind, scheme = kind_of(url), url.scheme
        settings = self._plain(scheme, kind)
        place: StorePlace | None = self
        secrets: dict[str, str] = {}
        while place is not None and not secrets:
            owner, secrets = place.which, place._secrets(scheme, kind, environment)
            place = place.beside
        settings |= secrets

        def called(option: StoreOption) -> str:
            variable = _variable(owner if option.secret else self.which, scheme, option)
            word = "" if option.secret else f"{_word(self.which, scheme, option)}, or "
            return f"{word}{variable} in the environment"

        kind.check(self.url, settings, called)
        return settings

    def _plain(self, scheme: str, kind: StoreKind) -> dict[str, str]:
        """Its own options that are not secret. Those of the store beside it fill in for required ones, or for all."""
        names = [option.name for option in kind.options if not option.secret]
        own = {name: value for name in names if (value := self.options.get(f"{scheme}_{name}"))}
        if self.beside is None:
            return own
        required = {option.name for option in kind.options if option.required}
        others = self.beside._plain(scheme, kind)
        return {name: value for name, value in others.items() if name in required or not own} | own

    def _secrets(self, scheme: str, kind: StoreKind, environment: Mapping[str, str]) -> dict[str, str]:
        names = {option.name: _variable(self.which, scheme, option) for option in kind.options if option.secret}
        return {name: environment[variable] for name, variable in names.items() if environment.get(variable)}
