"""Opens the object store that a URL names: `s3://BUCKET/PREFIX` or `file:///PATH`.

It reads no environment variables and keeps no secrets: whoever starts the engine passes them.
"""

from __future__ import annotations

from styx.errors import ConfigurationError
from styx.store.base import Store, StoreReader
from styx.store.stores import STORES, kind_of
from styx.store.url import parse_store_url


def open_store(url: str, **options: str | None) -> Store:
    """Opens the store at `url`. `styx.store.stores` has the options of each kind, for `s3://` `endpoint`
    (`http://HOST:PORT`, or `https://HOST`), `access_key`, `secret_key` and `region`; None or `""` is none. Options of
    other kinds of stores are of no concern, so that a caller may hand on what it has.

    Raises `ConfigurationError` for a URL or an option that is wrong or missing, and `OSError` for a store that is out
    of reach.
    """
    return _opened(url, options, to_read=False)


def open_reader(url: str, **options: str | None) -> StoreReader:
    """Opens the store at `url` to read it, and changes nothing there; the rest is as with `open_store`."""
    return _opened(url, options, to_read=True)


def _opened(url: str, options: dict[str, str | None], to_read: bool) -> Store:
    parsed = parse_store_url(url)
    kind = kind_of(parsed)
    for name in options.keys() - {option.name for each in STORES.values() for option in each.options}:
        raise ConfigurationError(f"no store has an option {name!r}; see styx/store/stores.py")
    given = {option.name: value for option in kind.options if (value := options.get(option.name))}
    kind.check(url, given, lambda option: f"the {option.name.replace('_', ' ')} of its server")
    return kind.opener(url)(parsed, given, to_read)
