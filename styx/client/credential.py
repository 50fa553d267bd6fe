"""An HTTP client's credential, and the authority that it trusts. No error shows a credential."""

from __future__ import annotations

import os
import ssl
from collections.abc import Callable, Mapping
from typing import Any, Final

from styx.errors import ConfigurationError

PASSWORD_IN_URL: Final = (
    "a URL with a user or a password in it is not taken, since URLs are shown and logged: leave out what is before the "
    "@, and give"
)
"""Why such a URL is refused, without showing it; behind it stands what to give instead."""

Token = str | Callable[[], str]


class Credential:
    """An API key, or a token, or a function that gives the token of the moment; at most one of them.

    Raises `ConfigurationError`.
    """

    def __init__(self, api_key: str | None = None, token: Token | None = None) -> None:
        if api_key is not None and token is not None:
            raise ConfigurationError("give either api_key or token: a request has one credential")
        self._given = api_key if token is None else token
        if self._given is not None and not callable(self._given):
            _checked(self._given)

    def __repr__(self) -> str:
        return "Credential(…)"

    def headers(self) -> dict[str, str]:
        """The headers of a request sent now; raises `ConfigurationError` for a token that can be none."""
        if self._given is None:
            return {}
        text = self._given() if callable(self._given) else self._given
        return {"Authorization": "Bearer " + _checked(text)}


def from_environment(url: str, environment: Mapping[str, str] = os.environ) -> dict[str, Any]:
    """Options of `connect` for programs that are told by `STYX_API_KEY` and `STYX_CA`; none for `kafka://`.

    Nothing else reads them: a key is for the gateway that it was given for.
    """
    if not url.startswith(("http://", "https://")):
        return {}
    return {"api_key": environment.get("STYX_API_KEY") or None, "ca_file": environment.get("STYX_CA") or None}


def trusting(ca_file: str | os.PathLike[str] | None) -> ssl.SSLContext | None:
    """A TLS context that trusts the authority in a PEM file and no other; None: those of the system.

    Raises `ConfigurationError`.
    """
    if ca_file is None:
        return None
    try:
        return ssl.create_default_context(cafile=ca_file)
    except (ssl.SSLError, OSError) as error:
        raise ConfigurationError(f"{os.fspath(ca_file)} holds no PEM certificate of an authority: {error}") from None


def _checked(text: object) -> str:
    stripped = text.strip() if isinstance(text, str) else ""
    if not stripped or not stripped.isascii() or not stripped.isprintable() or " " in stripped:
        raise ConfigurationError("this is neither an API key nor a token: it has one line of letters, digits and signs")
    return stripped
