"""The URL of a store, taken apart: `s3://BUCKET/PREFIX`, `file:///PATH`."""

from __future__ import annotations

from typing import NamedTuple
from urllib.parse import SplitResult, unquote, urlsplit

from styx.errors import ConfigurationError
from styx.store.base import check_name


class StoreUrl(NamedTuple):
    """`text` is the whole URL, `host` what stands between `//` and `/`, and `path` is unquoted."""

    text: str
    scheme: str
    host: str
    path: str

    def bucket_and_prefix(self) -> tuple[str, str]:
        """Of a URL that names a bucket, and a prefix of the names in it, `""` for all of it. Raises
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
    """Raises `ConfigurationError`. Whether there are such stores is not asked."""
    parts = split_url(text, f"{text!r} is not the URL of a store", "Use SCHEME://PLACE/PATH.")
    return StoreUrl(text, parts.scheme, parts.netloc, unquote(parts.path))


def split_url(text: str, problem: str, usage: str) -> SplitResult:
    """Any URL that is an address and nothing more; raises `ConfigurationError`, `problem` first and `usage` last."""
    try:
        parts = urlsplit(text)
        _ = parts.port
    except ValueError as error:
        raise ConfigurationError(f"{problem}: {error}. {usage}") from None
    if parts.query or parts.fragment or parts.username is not None:
        raise ConfigurationError(f"{problem}: it has more than an address. {usage}")
    return parts
