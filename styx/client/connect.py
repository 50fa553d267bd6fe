"""`connect` and `connect_sync`: from a URL to the client for its scheme. The client is not opened yet."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from styx.client.base import RemoteClient
from styx.client.credential import PASSWORD_IN_URL, Credential, Token
from styx.errors import ConfigurationError
from styx.model.app import App
from styx.process.extras import lacking
from styx.values.codec import shown

if TYPE_CHECKING:
    from styx.client.sync import SyncRemoteClient


def connect(
    url: str,
    app: App | str | None = None,
    *,
    api_key: str | None = None,
    token: Token | None = None,
    ca_file: str | os.PathLike[str] | None = None,
) -> RemoteClient:
    """A client of the deployment at `url`; use it as `async with connect(...) as client`.

    `http://` and `https://` go through a gateway, which serves one app, so `app` may be left out. `kafka://` goes
    straight to the brokers and needs the app, or its name.

    A gateway that asks who it is gets the `api_key`, or the `token`: a string, or a function that gives the one of the
    moment. `ca_file` is a PEM file with the authority of its certificate, if that is a private one.

    Raises `ConfigurationError` for a URL or a credential it cannot use.
    """
    try:
        parts = urlsplit(url if isinstance(url, str) else "")
    except ValueError:
        raise ConfigurationError("its host cannot be read: a URL looks like http://127.0.0.1:8080") from None
    if "@" in parts.netloc:
        raise ConfigurationError(f"{PASSWORD_IN_URL} a gateway's key as api_key= or STYX_API_KEY")
    make = _CLIENTS.get(parts.scheme)
    if make is None:
        known = ", ".join(f"{name}://" for name in _CLIENTS)
        raise ConfigurationError(f"cannot connect to {shown(url)}: a URL starts with one of {known}")
    credential = Credential(api_key, token)
    if make is not _http and (api_key is not None or token is not None or ca_file is not None):
        raise ConfigurationError("api_key, token and ca_file are for gateways; Kafka's login is in the environment")
    return make(url, app, credential, ca_file)


def connect_sync(
    url: str,
    app: App | str | None = None,
    *,
    api_key: str | None = None,
    token: Token | None = None,
    ca_file: str | os.PathLike[str] | None = None,
) -> SyncRemoteClient:
    """The same as `connect`, blocking; use it as `with connect_sync(...) as client`."""
    from styx.client.sync import SyncRemoteClient

    def make() -> RemoteClient:
        return connect(url, app, api_key=api_key, token=token, ca_file=ca_file)

    make()  # a wrong URL, or a missing extra, fails here rather than on the client's thread
    return SyncRemoteClient(make)


def _http(
    url: str, app: App | str | None, credential: Credential, ca_file: str | os.PathLike[str] | None
) -> RemoteClient:
    try:
        from styx.client.http import HttpClient
    except ImportError as error:
        raise ConfigurationError(lacking("the HTTP client", error.name, "client")) from None
    return HttpClient(url, credential, ca_file)


def _kafka(url: str, app: App | str | None, *_: object) -> RemoteClient:
    if app is None:
        raise ConfigurationError(f"connecting to {shown(url)} needs the app or its name: connect(url, app=...)")
    try:
        from styx.client.kafka.client import KafkaClient
    except ImportError as error:
        raise ConfigurationError(lacking("the Kafka client", error.name, "kafka")) from None
    return KafkaClient(url, app)


_CLIENTS: Final[dict[str, Callable[..., RemoteClient]]] = {
    "http": _http,
    "https": _http,
    "kafka": _kafka,
}
"""By the URL's scheme; makes a client of the URL and the app."""
