"""The stores that there are, by the scheme of their URL: module, extra, and the options that they have.

The one place where a store is registered. Command line, backup, restore, `styx up` and the charts hand on the options
by their names, without a word of what they mean.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Final, NamedTuple, Protocol, cast

from styx.errors import ConfigurationError
from styx.process.extras import lacking
from styx.store.base import Store
from styx.store.url import StoreUrl


class StoreOption(NamedTuple):
    """An option of the stores of one scheme: `endpoint` of `s3` is `--s3-endpoint` and STYX_S3_ENDPOINT.

    A secret is read from the environment only: options can be seen by whoever lists processes.
    """

    name: str
    help: str = ""
    required: bool = False
    secret: bool = False


class Opener(Protocol):
    """The function `open_at` of a store's module."""

    def __call__(self, url: StoreUrl, options: Mapping[str, str], to_read: bool) -> Store:
        """Raises `ConfigurationError`, and `OSError` when it is out of reach. `options` has what is required."""
        ...


class StoreKind(NamedTuple):
    """The stores of one scheme; `module` has the function `open_at` (`Opener`), and `extra` installs what it needs."""

    usage: str
    module: str
    extra: str = ""
    options: tuple[StoreOption, ...] = ()

    def opener(self, url: str) -> Opener:
        """Imports the module. Raises `ConfigurationError` if the extra is not installed."""
        try:
            return cast(Opener, import_module(self.module).open_at)
        except ModuleNotFoundError as error:
            raise ConfigurationError(lacking(f"the store {url!r}", error.name, self.extra)) from None

    def check(self, url: str, options: Mapping[str, str], called: Callable[[StoreOption], str]) -> None:
        """Raises `ConfigurationError` that names what is missing, each as it is `called`."""
        missing = [called(option) for option in self.options if option.required and not options.get(option.name)]
        if missing:
            raise ConfigurationError(f"the store {url} needs {'; '.join(missing)}")


STORES: Final[Mapping[str, StoreKind]] = {
    "s3": StoreKind(
        "s3://BUCKET/PREFIX",
        "styx.store.s3",
        extra="s3",
        options=(
            StoreOption("endpoint", "The S3 server, http://HOST:PORT or https://HOST.", required=True),
            StoreOption("region", "The bucket's region, if the server does not say it."),
            StoreOption("access_key", required=True, secret=True),
            StoreOption("secret_key", required=True, secret=True),
        ),
    ),
    "gs": StoreKind(
        "gs://BUCKET/PREFIX",
        "styx.store.gcs",
        extra="gcs",
        options=(
            StoreOption("endpoint", "Another server than Google's; without a login if there is no key."),
            StoreOption("service_account_key", secret=True),
        ),
    ),
    "az": StoreKind(
        "az://CONTAINER/PREFIX",
        "styx.store.azure",
        extra="azure",
        options=(
            StoreOption("account", "The Azure storage account.", required=True),
            StoreOption("endpoint", "Its address, if not https://ACCOUNT.blob.core.windows.net."),
            StoreOption("account_key", secret=True),
            StoreOption("sas_token", secret=True),
        ),
    ),
    "file": StoreKind("file:///PATH", "styx.store.directory"),
}
USAGE: Final = " or ".join(", ".join(kind.usage for kind in STORES.values()).rsplit(", ", 1))


def kind_of(url: StoreUrl) -> StoreKind:
    """The kind of store that a URL names; raises `ConfigurationError` with the URLs that there are."""
    kind = STORES.get(url.scheme)
    if kind is None:
        raise ConfigurationError(f"{url.text!r} is not the URL of a store. Use {USAGE}.")
    return kind
