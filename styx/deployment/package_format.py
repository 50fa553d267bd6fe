"""A package's bytes: a header that anyone with the secret can read, a signature over all of it, and the payload.

    magic | length of the header (4 bytes) | header (msgpack) | HMAC-SHA256 of everything else | payload

Nothing is decoded before the signature is verified, and nothing here is ever unpickled.
"""

from __future__ import annotations

import hmac
from typing import Final

import msgspec

from styx.errors import ConfigurationError
from styx.model.limits import MIB
from styx.schema.description import AppDescription

PACKAGE_BYTES_MAX: Final = 64 * MIB
"""One package, header and signature included."""
MAGIC: Final = b"styxapp\x01"
"""Its last byte is the version of the format."""
_LENGTH_BYTES: Final = 4
_SIGNATURE_BYTES: Final = 32


class PackageRefused(ConfigurationError):
    """A package cannot be used here; the message says why, and what to do."""


class Dependency(msgspec.Struct, frozen=True, order=True):
    """An installed distribution that the app's code imports, and the modules of it that are imported.

    `version` is empty for a module that no installed distribution lists.
    """

    distribution: str
    version: str
    modules: list[str]


class PackageHeader(msgspec.Struct, frozen=True, kw_only=True):
    """The facts about a package that are known without unpickling it. `python` is such as `3.11`.

    `modules` were packed with the app. `fingerprint` is the same whenever the same sources are packed; values that a
    module computed from its surroundings when it was imported (an environment variable, say) do not change it.
    """

    description: AppDescription
    python: str
    cloudpickle: str
    styx: str
    dependencies: list[Dependency]
    modules: list[str]
    fingerprint: str


def seal(header: PackageHeader, payload: bytes, secret: bytes) -> bytes:
    """The signed package; raises `ConfigurationError` if it is too large or the secret is empty."""
    head = msgspec.msgpack.encode(header)
    front = MAGIC + len(head).to_bytes(_LENGTH_BYTES, "big") + head
    size = len(front) + _SIGNATURE_BYTES + len(payload)
    if size > PACKAGE_BYTES_MAX:
        raise ConfigurationError(
            f"app {header.description.name!r} makes a package of {size} bytes; the limit is {PACKAGE_BYTES_MAX}: "
            "a module of it holds data, which belongs into the state or into an installed distribution"
        )
    return b"".join((front, _signature(front, payload, secret), payload))


def unseal(data: bytes, secret: bytes) -> tuple[PackageHeader, bytes]:
    """Header and payload of a package signed with `secret`; raises `PackageRefused` for anything else."""
    if len(data) > PACKAGE_BYTES_MAX:
        raise PackageRefused(f"the package has {len(data)} bytes; the limit is {PACKAGE_BYTES_MAX}")
    end = _end_of_front(data)
    front, payload = data[:end], data[end + _SIGNATURE_BYTES :]
    if not hmac.compare_digest(data[end : end + _SIGNATURE_BYTES], _signature(front, payload, secret)):
        raise PackageRefused(
            "the package's signature is wrong: it was signed with another secret, or changed or cut off on its way"
        )
    return _header(front), payload


def unverified_header(data: bytes) -> PackageHeader:
    """The header of a package whose signature nobody checks: whoever can write to the store can have made it. It is
    good for showing names and types to a person, and for nothing that runs. Raises `PackageRefused`.
    """
    return _header(data[: _end_of_front(data)])


def _end_of_front(data: bytes) -> int:
    """Where the header ends, and the signature begins."""
    if not data.startswith(MAGIC):
        raise PackageRefused("this is no package of this version's format: pack the app with this version of styx")
    at = len(MAGIC)
    end = at + _LENGTH_BYTES + int.from_bytes(data[at : at + _LENGTH_BYTES], "big")
    if len(data) < end + _SIGNATURE_BYTES:
        raise PackageRefused("the package is cut off: send it again")
    return end


def _header(front: bytes) -> PackageHeader:
    try:
        return msgspec.msgpack.decode(front[len(MAGIC) + _LENGTH_BYTES :], type=PackageHeader)
    except msgspec.DecodeError as error:
        raise PackageRefused(f"the package's header cannot be read ({error}): pack the app with this version") from None


def _signature(front: bytes, payload: bytes, secret: bytes) -> bytes:
    if not secret:
        raise ConfigurationError("a package needs the cluster's secret, and it is empty: set the same one everywhere")
    signature = hmac.new(secret, front, "sha256")
    signature.update(payload)
    return signature.digest()
