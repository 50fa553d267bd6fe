"""Stores by their URL: `s3://BUCKET/PREFIX`, `file:///PATH`. A URL is parsed, and its scheme gives the kind of store.

`STORES` is the one place where a kind of store is registered. Command line, backup, restore, `styx up` and the charts
hand on its options by name, and know nothing else about them. Secrets are passed as options too: this module reads no
environment variables and keeps no secrets.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Final, NamedTuple, Protocol, cast
from urllib.parse import SplitResult, unquote, urlsplit

from styx.errors import ConfigurationError
from styx.process.extras import lacking
from styx.store.base import Store, StoreReader, check_name


class StoreUrl(NamedTuple):
    """A parsed URL. `text` is the whole of it, `host` the part between `//` and `/`; `path` is unquoted."""

    text: str
    scheme: str
    host: str
    path: str

    def bucket_and_prefix(self) -> tuple[str, str]:
        """(bucket, prefix) of a URL that names a bucket; the prefix `""` means all objects. Raises
        `ConfigurationError`.
        """
        prefix = self.path.strip("/")
        if not self.host or ":" in self.host:
            raise ConfigurationError(f"{self.text!r} names no bucket. Use {self.scheme}://BUCKET/PREFIX.")
        if prefix:
            try:
                check_name(prefix)
            except ValueError as error:
                raise ConfigurationError(f"the prefix of {self.text!r} cannot be used: {error}") from None
        return self.host, prefix


def parse_store_url(text: str) -> StoreUrl:
    """Parses a URL of any scheme, registered or not. Raises `ConfigurationError`."""
    parts = split_url(text, f"{text!r} is not the URL of a store", "Use SCHEME://PLACE/PATH.")
    return StoreUrl(text, parts.scheme, parts.netloc, unquote(parts.path))


def split_url(text: str, problem: str, usage: str) -> SplitResult:
    """Parses a URL without user, query and fragment; `ConfigurationError` has `problem` first and `usage` last."""
    try:
        parts = urlsplit(text)
        _ = parts.port
    except ValueError as error:
        raise ConfigurationError(f"{problem}: {error}. {usage}") from None
    if parts.query or parts.fragment or parts.username is not None:
        raise ConfigurationError(f"{problem}: it has more than an address. {usage}")
    return parts


class StoreOption(NamedTuple):
    """An option of the stores of one scheme: `endpoint` of `s3` is `--s3-endpoint` and STYX_S3_ENDPOINT.

    A secret is read from the environment only, because a list of processes shows their options.
    """

    name: str
    help: str = ""
    required: bool = False
    secret: bool = False


class Opener(Protocol):
    """The function that opens a store of one kind."""

    def __call__(self, url: StoreUrl, options: Mapping[str, str], to_read: bool) -> Store:
        """`options` has all required options. Raises `ConfigurationError`, and `OSError` for a store out of reach."""
        ...


class StoreKind(NamedTuple):
    """The stores of one scheme; `opens` is the `Opener` as MODULE:FUNCTION, and `extra` installs its library."""

    usage: str
    opens: str
    extra: str = ""
    options: tuple[StoreOption, ...] = ()

    def opener(self, url: str) -> Opener:
        """Imports the opener's module. Raises `ConfigurationError` if the extra is not installed."""
        module, _, function = self.opens.partition(":")
        try:
            return cast(Opener, getattr(import_module(module), function))
        except ModuleNotFoundError as error:
            raise ConfigurationError(lacking(f"the store {url!r}", error.name, self.extra)) from None

    def check(self, url: str, options: Mapping[str, str], called: Callable[[StoreOption], str]) -> None:
        """Raises `ConfigurationError` with the required options that are missing, each as it is `called`."""
        missing = [called(option) for option in self.options if option.required and not options.get(option.name)]
        if missing:
            raise ConfigurationError(f"the store {url} needs {'; '.join(missing)}")


STORES: Final[Mapping[str, StoreKind]] = {
    "s3": StoreKind(
        "s3://BUCKET/PREFIX",
        "styx.store.s3:open_at",
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
        "styx.store.cloud:open_gcs",
        extra="gcs",
        options=(
            StoreOption("endpoint", "Another server than Google's; without a login if there is no key."),
            StoreOption("service_account_key", secret=True),
        ),
    ),
    "az": StoreKind(
        "az://CONTAINER/PREFIX",
        "styx.store.cloud:open_azure",
        extra="azure",
        options=(
            StoreOption("account", "The Azure storage account.", required=True),
            StoreOption("endpoint", "Its address, if not https://ACCOUNT.blob.core.windows.net."),
            StoreOption("account_key", secret=True),
            StoreOption("sas_token", secret=True),
        ),
    ),
    "file": StoreKind("file:///PATH", "styx.store.directory:open_at"),
}
USAGE: Final = " or ".join(", ".join(kind.usage for kind in STORES.values()).rsplit(", ", 1))


def kind_of(url: StoreUrl) -> StoreKind:
    """The kind of store that a URL names; raises `ConfigurationError`, which lists the possible URLs."""
    kind = STORES.get(url.scheme)
    if kind is None:
        raise ConfigurationError(f"{url.text!r} is not the URL of a store. Use {USAGE}.")
    return kind


def open_store(url: str, **options: str | None) -> Store:
    """Opens the store at `url`. `STORES` has the options of each kind; `s3://` has `endpoint` (`http://HOST:PORT`, or
    `https://HOST`), `access_key`, `secret_key` and `region`. An option that is None or `""` counts as not given.
    Options of other kinds of stores are ignored, so that a caller may pass all that it has.

    Raises `ConfigurationError` for a URL or an option that is wrong or missing, and `OSError` for a store that is out
    of reach.
    """
    return _opened(url, options, to_read=False)


def open_reader(url: str, **options: str | None) -> StoreReader:
    """As `open_store`, but the store can only be read: its opening creates and removes nothing either."""
    return _opened(url, options, to_read=True)


def _opened(url: str, options: dict[str, str | None], to_read: bool) -> Store:
    parsed = parse_store_url(url)
    kind = kind_of(parsed)
    for name in options.keys() - {option.name for each in STORES.values() for option in each.options}:
        raise ConfigurationError(f"no store has an option {name!r}; see styx/store/stores.py")
    given = {option.name: value for option in kind.options if (value := options.get(option.name))}
    kind.check(url, given, lambda option: f"the {option.name.replace('_', ' ')} of its server")
    return kind.opener(url)(parsed, given, to_read)
