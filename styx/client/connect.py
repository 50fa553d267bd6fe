"""`connect` and `connect_sync`: from a URL to the client that speaks to what is there. They open nothing themselves."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from styx.app import App
from styx.client.base import Client
from styx.codec import shown
from styx.errors import ConfigurationError
from styx.extras import lacking

if TYPE_CHECKING:
    from styx.client.sync import SyncClient


def connect(url: str, app: App | str | None = None) -> Client:
    """A client of the deployment at `url`; use it as `async with connect(...) as client`.

    `http://` and `https://` go through a gateway, which serves one app, so `app` may be left out. `kafka://` goes
    straight to the brokers and needs the app, or its name.

    Raises `ConfigurationError` for a URL it cannot use.
    """
    scheme = urlsplit(url).scheme if isinstance(url, str) else ""
    make = _CLIENTS.get(scheme)
    if make is None:
        known = ", ".join(f"{name}://" for name in _CLIENTS)
        raise ConfigurationError(f"cannot connect to {shown(url)}: a URL starts with one of {known}")
    return make(url, app)


def connect_sync(url: str, app: App | str | None = None) -> SyncClient[Client]:
    """The same as `connect`, blocking; use it as `with connect_sync(...) as client`."""
    from styx.client.sync import SyncClient

    connect(url, app)  # a wrong URL, or a missing extra, fails here rather than on the client's thread
    return SyncClient(lambda: connect(url, app))


def _http(url: str, app: App | str | None) -> Client:
    try:
        from styx.client.http import HttpClient
    except ImportError as error:
        raise ConfigurationError(lacking("the HTTP client", error.name, "client")) from None
    return HttpClient(url)


def _kafka(url: str, app: App | str | None) -> Client:
    if app is None:
        raise ConfigurationError(f"connecting to {shown(url)} needs the app or its name: connect(url, app=...)")
    try:
        from styx.client.kafka import KafkaClient
    except ImportError as error:
        raise ConfigurationError(lacking("the Kafka client", error.name, "kafka")) from None
    return KafkaClient(url, app)


_CLIENTS: Final[dict[str, Callable[[str, App | str | None], Client]]] = {
    "http": _http,
    "https": _http,
    "kafka": _kafka,
}
"""By the URL's scheme; makes a client of the URL and the app."""
