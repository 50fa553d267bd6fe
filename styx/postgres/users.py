"""The users of the PostgreSQL port: a file of lines `NAME:SCRAM-SHA-256$…`, as PostgreSQL keeps passwords."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from typing import Final

from styx.errors import ConfigurationError
from styx.postgres.scram import SALT_BYTES, Verifier, make_verifier, read_verifier

USERS_MAX: Final = 10_000
NAME_BYTES_MAX: Final = 63


def read_users(text: str) -> Mapping[str, Verifier]:
    """The verifiers by user. Empty lines and those that begin with # are left out; raises `ConfigurationError` with the
    number of a line that is neither, and never with what is in it.
    """
    found: dict[str, Verifier] = {}
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip() or line.startswith("#"):
            continue
        name, colon, secret = line.strip().rpartition(":SCRAM")
        if not colon or not name or len(name.encode()) > NAME_BYTES_MAX or "\0" in name:
            raise ConfigurationError(f"line {number} of the users is not NAME:SCRAM-SHA-256$…")
        try:
            verifier = read_verifier("SCRAM" + secret)
        except ValueError as error:
            raise ConfigurationError(f"line {number} of the users has no verifier: {error}") from None
        if name in found:
            raise ConfigurationError(f"line {number} of the users names one that an earlier line has")
        found[name] = verifier
    if len(found) > USERS_MAX:
        raise ConfigurationError(f"there are {len(found)} users: at most {USERS_MAX} are allowed")
    return found


def user_line(name: str, password: str) -> str:
    """A line for the file of users; raises `ConfigurationError` for a name that cannot be there."""
    line = f"{name}:{make_verifier(password, secrets.token_bytes(SALT_BYTES))}"
    if list(read_users(line)) != [name]:
        raise ConfigurationError(f"{name!r} can be no user")
    return line
