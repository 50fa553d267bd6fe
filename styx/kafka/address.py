"""The address of Kafka and the settings of a connection, from a URL and, for secrets, from the environment."""

from __future__ import annotations

import os
import re
import ssl
from collections.abc import Mapping
from typing import Any, Final, NamedTuple
from urllib.parse import parse_qsl, urlsplit

from styx.errors import ConfigurationError

SCHEME: Final = "kafka"
PORT_DEFAULT: Final = 9092
USERNAME_VARIABLE: Final = "STYX_KAFKA_USERNAME"
PASSWORD_VARIABLE: Final = "STYX_KAFKA_PASSWORD"

_PROTOCOLS: Final = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
_MECHANISMS: Final = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")
_BROKER: Final = re.compile(r"(?P<host>\[[0-9a-fA-F:.]++\]|[^\[\]:/@\s]++)(:(?P<port>[0-9]{1,5}+))?+")


class KafkaAddress(NamedTuple):
    """`bootstrap` is HOST:PORT,HOST:PORT; the other fields are for TLS and the login. Shown without the password."""

    bootstrap: str
    protocol: str = "PLAINTEXT"
    mechanism: str = "PLAIN"
    cafile: str | None = None
    username: str | None = None
    password: str | None = None

    def __repr__(self) -> str:
        return f"KafkaAddress({self.bootstrap!r}, {self.protocol})"

    def options(self) -> dict[str, Any]:
        """Arguments for any of aiokafka's clients. Raises `OSError` if the CA file cannot be read."""
        options: dict[str, Any] = {"bootstrap_servers": self.bootstrap, "security_protocol": self.protocol}
        if self.protocol.endswith("SSL"):
            options["ssl_context"] = ssl.create_default_context(cafile=self.cafile)
        if self.protocol.startswith("SASL"):
            options["sasl_mechanism"] = self.mechanism
            options["sasl_plain_username"] = self.username
            options["sasl_plain_password"] = self.password
        return options

    def reader_options(self) -> dict[str, Any]:
        """`options`, for a consumer of committed records that decides itself what it reads, and from where."""
        own: dict[str, Any] = {"group_id": None, "enable_auto_commit": False, "auto_offset_reset": "none"}
        return {**self.options(), **own, "isolation_level": "read_committed"}


def parse_kafka_url(url: str, environment: Mapping[str, str] = os.environ) -> KafkaAddress:
    """Reads `kafka://h1:9092,h2:9092`, with options like `?protocol=SASL_SSL&mechanism=SCRAM-SHA-512&cafile=FILE`.

    User name and password come from STYX_KAFKA_USERNAME and STYX_KAFKA_PASSWORD, since lists of processes show URLs.
    Raises `ConfigurationError`.
    """
    parts = urlsplit(url)
    if parts.scheme != SCHEME or not parts.netloc or parts.path not in ("", "/") or parts.fragment:
        raise ConfigurationError(f"{url!r} is not a Kafka address; write kafka://HOST:PORT or kafka://H1:P1,H2:P2")
    if "@" in parts.netloc:
        raise ConfigurationError(
            f"Put no user name or password into the Kafka address; set {USERNAME_VARIABLE} and {PASSWORD_VARIABLE}"
        )
    bootstrap = ",".join(_broker(broker) for broker in parts.netloc.split(","))
    options = dict(parse_qsl(parts.query, keep_blank_values=True))
    protocol = _one_of("protocol", options.pop("protocol", "PLAINTEXT").upper(), _PROTOCOLS)
    mechanism = _one_of("mechanism", options.pop("mechanism", "PLAIN").upper(), _MECHANISMS)
    cafile = options.pop("cafile", None)
    if options:
        raise ConfigurationError(
            f"{url!r} has the unknown option {next(iter(options))!r}; there are protocol, mechanism and cafile"
        )
    username, password = environment.get(USERNAME_VARIABLE), environment.get(PASSWORD_VARIABLE)
    if protocol.startswith("SASL") and not (username and password):
        raise ConfigurationError(f"{protocol} needs {USERNAME_VARIABLE} and {PASSWORD_VARIABLE} in the environment")
    return KafkaAddress(bootstrap, protocol, mechanism, cafile, username, password)


def _broker(text: str) -> str:
    match = _BROKER.fullmatch(text)
    port = int(match["port"] or PORT_DEFAULT) if match else 0
    if match is None or not 0 < port < 1 << 16:
        raise ConfigurationError(f"{text!r} in the Kafka address is not HOST:PORT")
    return f"{match['host']}:{port}"


def _one_of(option: str, value: str, choices: tuple[str, ...]) -> str:
    if value not in choices:
        raise ConfigurationError(f"The Kafka address has {option}={value}; it must be one of {', '.join(choices)}")
    return value
