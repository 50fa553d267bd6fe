"""The object store that a URL names: `s3://BUCKET/PREFIX` or `file:///PATH`.

It reads no environment variables and keeps no secrets: whoever starts the engine passes them.
"""

from __future__ import annotations

from typing import Final
from urllib.parse import SplitResult, unquote, urlsplit

from styx.errors import ConfigurationError
from styx.process.extras import lacking
from styx.store.base import Store, StoreReader, check_name
from styx.store.directory import DirectoryStore

_URLS: Final = "Use s3://BUCKET/PREFIX or file:///PATH."
_ENDPOINTS: Final = "It is http://HOST:PORT or https://HOST."


def open_store(
    url: str,
    *,
    endpoint: str | None = None,
    access_key: str | None = None,
    secret_key: str | None = None,
    region: str | None = None,
) -> Store:
    """Opens the store at `url`; what follows is for `s3://` alone: the server's `endpoint` (`http://HOST:PORT`, or
    `https://HOST`), its keys, and the bucket's region if the server need not be asked for it.

    Raises `ConfigurationError` for a URL, endpoint, bucket or keys that are wrong, and `OSError` for a store that is
    out of reach.
    """
    return _opened(url, endpoint, access_key, secret_key, region, to_read=False)


def open_reader(
    url: str,
    *,
    endpoint: str | None = None,
    access_key: str | None = None,
    secret_key: str | None = None,
    region: str | None = None,
) -> StoreReader:
    """Opens the store at `url` to read it, and changes nothing there; the rest is as with `open_store`."""
    return _opened(url, endpoint, access_key, secret_key, region, to_read=True)


def _opened(
    url: str,
    endpoint: str | None,
    access_key: str | None,
    secret_key: str | None,
    region: str | None,
    to_read: bool,
) -> Store:
    parts = _split(url, f"{url!r} is not the URL of a store", _URLS)
    if parts.scheme == "file":
        try:
            return DirectoryStore(_path(url, parts), to_read)
        except (FileNotFoundError, NotADirectoryError):
            raise ConfigurationError(f"{url!r} names no directory that there is") from None
    if parts.scheme != "s3":
        raise ConfigurationError(f"{url!r} is not the URL of a store. {_URLS}")
    bucket, prefix = _bucket_and_prefix(url, parts)
    for what, value in (("endpoint", endpoint), ("access key", access_key), ("secret key", secret_key)):
        if not value:
            raise ConfigurationError(f"the store {url!r} needs the {what} of its S3 server")
    host, secure = _host(endpoint or "")
    try:
        from styx.store.s3 import S3Store
    except ModuleNotFoundError as error:
        raise ConfigurationError(lacking(f"the store {url!r}", error.name, "s3")) from None
    return S3Store(host, bucket, prefix, access_key or "", secret_key or "", secure, region, to_read)


def _split(url: str, problem: str, usage: str) -> SplitResult:
    try:
        parts = urlsplit(url)
        _ = parts.port
    except ValueError as error:
        raise ConfigurationError(f"{problem}: {error}. {usage}") from None
    if parts.query or parts.fragment or parts.username is not None:
        raise ConfigurationError(f"{problem}: it has more than an address. {usage}")
    return parts


def _path(url: str, parts: SplitResult) -> str:
    path = unquote(parts.path)
    if parts.netloc not in ("", "localhost") or not path.startswith("/") or "\0" in path:
        raise ConfigurationError(
            f"{url!r} names no directory of this machine: it has three slashes, as in file:///data"
        )
    return path


def _bucket_and_prefix(url: str, parts: SplitResult) -> tuple[str, str]:
    prefix = unquote(parts.path).strip("/")
    if not parts.netloc or ":" in parts.netloc:
        raise ConfigurationError(f"{url!r} names no bucket. {_URLS}")
    if prefix:
        try:
            check_name(prefix)
        except ValueError as error:
            raise ConfigurationError(f"the prefix of {url!r} cannot be used: {error}") from None
    return parts.netloc, prefix


def _host(endpoint: str) -> tuple[str, bool]:
    """(`HOST` or `HOST:PORT`, whether over TLS)."""
    problem = f"{endpoint!r} is not the endpoint of an S3 server"
    parts = _split(endpoint, problem, _ENDPOINTS)
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.path not in ("", "/"):
        raise ConfigurationError(f"{problem}. {_ENDPOINTS}")
    return parts.netloc, parts.scheme == "https"
