"""Options of `styx backup` and `styx restore`: the cluster's store, and the place of the backups, each with its server.

Opens what they name. Keys come from the environment; a place without keys or a server of its own has the store's.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Final, NamedTuple

from cyclopts import Parameter

if TYPE_CHECKING:
    from styx.store.base import Store, StoreReader

StoreUrl = Annotated[
    str, Parameter(name="--store", help="The cluster's: s3://BUCKET/PREFIX or file:///PATH.", env_var="STYX_STORE")
]
S3Endpoint = Annotated[
    str | None, Parameter(help="Its S3 server, http://HOST:PORT or https://HOST.", env_var="STYX_S3_ENDPOINT")
]
S3Region = Annotated[
    str | None, Parameter(help="The bucket's region, if the server does not tell.", env_var="STYX_S3_REGION")
]
STORE_KEYS: Final = ("STYX_S3_ACCESS_KEY", "STYX_S3_SECRET_KEY")


class Place(NamedTuple):
    """Where a store is; `keys` are the variables that hold its access key and its secret key."""

    url: str
    endpoint: str | None
    region: str | None
    keys: tuple[str, str] = STORE_KEYS
    endpoint_option: str = "--s3-endpoint, or STYX_S3_ENDPOINT in the environment"

    def open(self, environment: Mapping[str, str] = os.environ) -> Store:
        """Raises `ConfigurationError` and `OSError`."""
        from styx.store.open_store import open_store

        access_key, secret_key = self._keys(environment)
        return open_store(
            self.url, endpoint=self.endpoint, access_key=access_key, secret_key=secret_key, region=self.region
        )

    def open_to_read(self, environment: Mapping[str, str] = os.environ) -> StoreReader:
        """Changes nothing there. Raises `ConfigurationError` and `OSError`."""
        from styx.store.open_store import open_reader

        access_key, secret_key = self._keys(environment)
        return open_reader(
            self.url, endpoint=self.endpoint, access_key=access_key, secret_key=secret_key, region=self.region
        )

    def _keys(self, environment: Mapping[str, str]) -> tuple[str | None, str | None]:
        from styx.errors import ConfigurationError

        names = self.keys if any(environment.get(name) for name in self.keys) else STORE_KEYS
        missing = [] if self.endpoint else [self.endpoint_option]
        missing += [f"{name} in the environment" for name in names if not environment.get(name)]
        if self.url.startswith("s3:") and missing:
            raise ConfigurationError(f"{self.url} needs {'; '.join(missing)}")
        return environment.get(names[0]), environment.get(names[1])


def beside(store: Place, url: str, endpoint: str | None, region: str | None, which: str) -> Place:
    """The place that the options `--WHICH…` name: on the store's server if they name none."""
    prefix = f"STYX_{which.upper()}_S3"
    return Place(
        url,
        endpoint or store.endpoint,
        region if endpoint or region else store.region,
        (f"{prefix}_ACCESS_KEY", f"{prefix}_SECRET_KEY"),
        f"--{which}-s3-endpoint, or {prefix}_ENDPOINT in the environment",
    )
