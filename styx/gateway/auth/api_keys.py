"""API keys: their form, and the file in which a gateway finds their hashes.

A key is `styx_ID_SECRET`. The file keeps the SHA-256 of the whole key. The secret has 160 random bits, which cannot be
guessed, so a slow hash would only cost time. The file is replaced as a whole, so that a gateway never reads half a
file.
"""

from __future__ import annotations

import fcntl
import hmac
import os
import secrets
import string
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import Final

import msgspec

from styx.errors import ConfigurationError
from styx.gateway.auth.identity import INVALID, Identity, NotProved
from styx.values.codec import shown

PREFIX: Final = "styx_"
KEYS_MAX: Final = 10_000
NAME_CHARS_MAX: Final = 64
KEY_CHARS_MAX: Final = 200

_ID_BYTES: Final = 4
_SECRET_BYTES: Final = 20
_HASH_CHARS: Final = 64
_NAME_CHARS: Final = frozenset(string.ascii_letters + string.digits + "-_.@")
_WORD_CHARS: Final = frozenset(string.ascii_letters + string.digits)
_HEX_CHARS: Final = frozenset("0123456789abcdef")
_NO_HASH: Final = "0" * _HASH_CHARS


class ApiKey(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """An entry of the file. `rate` is in requests a second, `in_flight` in requests at once; times have a time zone."""

    name: str
    id: str
    sha256: str
    created: datetime | None = None
    expires: datetime | None = None
    rate: float | None = None
    in_flight: int | None = None


class KeyFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The whole file."""

    keys: list[ApiKey]


_decoder = msgspec.json.Decoder(KeyFile)


class KeyRing:
    """The keys in one version of the file. Raises `ConfigurationError` for invalid entries."""

    def __init__(self, keys: list[ApiKey]) -> None:
        if len(keys) > KEYS_MAX:
            raise ConfigurationError(f"there are {len(keys)} API keys; {KEYS_MAX} is the most")
        self.keys = keys
        self._by_id: dict[str, ApiKey] = {}
        for key in keys:
            _check(key)
            if key.id in self._by_id:
                raise ConfigurationError(f"two API keys have the id {key.id}: revoke one of them")
            self._by_id[key.id] = key

    def identify(self, text: str, now_s: float) -> Identity:
        """The identity that the key `text` proves at `now_s` seconds since 1970. Raises `NotProved`. The time until
        then does not depend on how much of the secret is right.
        """
        if len(text) > KEY_CHARS_MAX:
            raise NotProved(INVALID)
        found = self._by_id.get(text.removeprefix(PREFIX).partition("_")[0])
        right = hmac.compare_digest(hash_of(text), _NO_HASH if found is None else found.sha256)
        if not right or found is None:
            raise NotProved(INVALID)
        if found.expires is not None and found.expires.timestamp() <= now_s:
            raise NotProved("the API key has expired")
        return Identity(found.name, "key " + found.id, None, found.rate, found.in_flight)


def parse(data: bytes) -> KeyRing:
    """The keys in a file's bytes; raises `ConfigurationError`."""
    try:
        return KeyRing(_decoder.decode(data).keys)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ConfigurationError(f"it is no file of API keys: {error}") from None


def encode(keys: list[ApiKey]) -> bytes:
    """The file's bytes."""
    return msgspec.json.format(msgspec.json.encode(KeyFile(keys)), indent=2) + b"\n"


def new_key(name: str, now: datetime, expires: datetime | None = None) -> tuple[str, ApiKey]:
    """A new key, which is shown once, and its entry. Raises `ConfigurationError` for an invalid name."""
    key_id = secrets.token_hex(_ID_BYTES)
    text = f"{PREFIX}{key_id}_{secrets.token_hex(_SECRET_BYTES)}"
    entry = ApiKey(name, key_id, hash_of(text), now.replace(microsecond=0), expires)
    _check(entry)
    return text, entry


def hash_of(text: str) -> str:
    """The hash of a key, as the file keeps it."""
    return sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def utc_now() -> datetime:
    """The time now, with its zone."""
    return datetime.now(UTC)


def _check(key: ApiKey) -> None:
    if not 0 < len(key.name) <= NAME_CHARS_MAX or not _NAME_CHARS.issuperset(key.name):
        raise ConfigurationError(
            f"{shown(key.name)} is no name of an API key: it has 1 to {NAME_CHARS_MAX} letters, digits and -_.@"
        )
    if not key.id or not _WORD_CHARS.issuperset(key.id):
        raise ConfigurationError(f"the API key {key.name} has the id {shown(key.id)}; it has letters and digits only")
    if len(key.sha256) != _HASH_CHARS or not _HEX_CHARS.issuperset(key.sha256):
        raise ConfigurationError(f"sha256 of the API key {key.name} is not the {_HASH_CHARS} hex digits of a SHA-256")
    if (key.rate is not None and not 0 < key.rate < float("inf")) or (key.in_flight is not None and key.in_flight < 1):
        raise ConfigurationError(f"the API key {key.name} has a limit that lets nothing through: rate and in_flight")
    for moment in (key.created, key.expires):
        if moment is not None and moment.tzinfo is None:
            raise ConfigurationError(f"the API key {key.name} has a time without a zone: write 2026-01-31T00:00:00Z")


# The file --------------------------------------------------------------------------------------------------


def read_file(path: Path) -> KeyRing:
    """The keys; raises `ConfigurationError`."""
    try:
        return parse(path.read_bytes())
    except OSError as error:
        raise ConfigurationError(f"the file of API keys {path} cannot be read: {error.strerror}") from None
    except ConfigurationError as error:
        raise ConfigurationError(f"{path}: {error}") from None


def change_file(path: Path, changed: Callable[[list[ApiKey]], list[ApiKey]]) -> None:
    """Replaces the keys by `changed(keys)`; a missing file has no keys. Two commands at once take turns.

    A new file can be read only by its owner; an existing file keeps its mode and owner. Raises `ConfigurationError`.
    """
    try:
        with _turn(path):
            old = read_file(path).keys if path.exists() else []
            data = encode(changed(old))
            parse(data)  # a file that a gateway would refuse is not written
            _replace(path, data)
    except OSError as error:
        raise ConfigurationError(f"the file of API keys {path} cannot be written: {error.strerror}") from None


@contextmanager
def _turn(path: Path) -> Iterator[None]:
    lock = os.open(path.parent, os.O_RDONLY)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
    finally:
        os.close(lock)


def _replace(path: Path, data: bytes) -> None:
    old = path.stat() if path.exists() else None
    number, name = tempfile.mkstemp(dir=path.parent, prefix=path.name + ".")
    try:
        with os.fdopen(number, "wb") as file:
            file.write(data)
            file.flush()
            if old is not None:
                _give_to(file.fileno(), old)
            os.fchmod(file.fileno(), 0o600 if old is None else old.st_mode & 0o777)
            os.fsync(file.fileno())
        os.replace(name, path)
    except BaseException:
        os.unlink(name)
        raise


def _give_to(number: int, old: os.stat_result) -> None:
    """Gives the new file to the owner of the old one, because a gateway that runs as that user must be able
    to read it.
    """
    new = os.fstat(number)
    if (new.st_uid, new.st_gid) == (old.st_uid, old.st_gid):
        return
    try:
        os.fchown(number, old.st_uid, old.st_gid)
    except OSError:
        raise ConfigurationError(
            f"the file of API keys belongs to user {old.st_uid}, group {old.st_gid}, and a new one cannot be given to "
            "them: nothing was changed. Run this command as that user"
        ) from None
