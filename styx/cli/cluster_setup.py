"""From options and the environment to the parts of a cluster's process: its security, its log, its store.

Only this module and `styx.cli.store_options`, for stores, read secrets. Wrong values are reported before anything
starts.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from styx.cli.common_options import DataOptions
from styx.cli.store_options import StorePlace
from styx.cluster.facts_access import tokens_for
from styx.cluster.facts_server import FactsAddress
from styx.cluster.options import ProcessOptions
from styx.errors import ConfigurationError
from styx.kafka.address import parse_kafka_url
from styx.transport import Security, TlsFiles
from styx.transport.address import parse_address

SECRET_VARIABLE: Final = "STYX_SECRET"
SECRET_FILE_VARIABLE: Final = "STYX_SECRET_FILE"
SECRET_BYTES_MIN: Final = 16
"""A shorter secret could be guessed."""
ANY_ADDRESS: Final = ("0.0.0.0", "::", "")
_TLS: Final = ("STYX_TLS_CERTIFICATE", "STYX_TLS_KEY", "STYX_TLS_AUTHORITY")
_HOW_TO_MAKE_ONE: Final = (
    f"Make one for all processes: export {SECRET_VARIABLE}=$(openssl rand -hex 32), "
    f"or put it into a file and set {SECRET_FILE_VARIABLE}=FILE."
)


def security_of(cluster: str, environment: Mapping[str, str] = os.environ) -> Security:
    """The secret, name and TLS files of the cluster, from the environment. Raises `ConfigurationError`."""
    return Security(secret_of(environment), cluster, _tls_of(environment))


def secret_of(environment: Mapping[str, str]) -> bytes:
    """The cluster's secret. Raises `ConfigurationError` if it is not set, cannot be read or is too short."""
    text, file = environment.get(SECRET_VARIABLE), environment.get(SECRET_FILE_VARIABLE)
    if text and file:
        raise ConfigurationError(f"both {SECRET_VARIABLE} and {SECRET_FILE_VARIABLE} are set; unset one of them")
    if file:
        try:
            secret = Path(file).read_bytes().strip()
        except OSError as error:
            raise ConfigurationError(
                f"the secret's file {file} cannot be read: {error.strerror}; {SECRET_FILE_VARIABLE} names it"
            ) from None
    else:
        secret = (text or "").strip().encode("utf-8", "surrogateescape")
    if not secret:
        raise ConfigurationError(f"the cluster's secret is not set.\n{_HOW_TO_MAKE_ONE}")
    if len(secret) < SECRET_BYTES_MIN:
        raise ConfigurationError(
            f"the cluster's secret has {len(secret)} bytes; it needs {SECRET_BYTES_MIN} at least.\n{_HOW_TO_MAKE_ONE}"
        )
    return secret


def facts_address(
    host: str, port: int | None, secret: bytes, environment: Mapping[str, str] = os.environ
) -> FactsAddress:
    """The address of a process's facts, and the tokens that it takes there. Raises `ConfigurationError`."""
    return FactsAddress(host, port, tokens_for(host, secret, environment))


def process_options(
    name: str | None,
    security: Security,
    coordinator: str,
    data: DataOptions,
    host: str,
    port: int,
    advertise: str = "",
    environment: Mapping[str, str] = os.environ,
) -> ProcessOptions:
    """The options of any process of a cluster. Raises `ConfigurationError`."""
    if coordinator:
        parse_address(coordinator)
    place = StorePlace(data.store, data.options)
    place.settings(environment)
    return ProcessOptions(
        name=name or default_name(),
        security=security,
        coordinator=coordinator,
        log=parse_kafka_url(data.log, environment),
        open_store=lambda: place.open(environment),
        host=host,
        port=port,
        advertise=advertise,
    )


def default_name() -> str:
    """The name of a process without one of its own: host and process id, which a reader of logs can look up."""
    return f"{socket.gethostname()}-{os.getpid()}"


def _tls_of(environment: Mapping[str, str]) -> TlsFiles | None:
    certificate, key, authority = (environment.get(name) for name in _TLS)
    if certificate and key and authority:
        return TlsFiles(certificate, key, authority)
    if certificate or key or authority:
        missing = ", ".join(name for name in _TLS if not environment.get(name))
        raise ConfigurationError(f"TLS needs all of {', '.join(_TLS)}; {missing} is not set")
    return None
