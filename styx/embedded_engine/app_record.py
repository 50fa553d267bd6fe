"""The record that a data directory keeps of each version of its app: the declarations, the limits, and the code itself.

A version's record is written before the first epoch that the version runs. The log's markers and the manifests say
which version runs, and from which snapshot on.
"""

from __future__ import annotations

import sys
from hashlib import blake2b
from typing import Final

import msgspec

from styx.deployment.fingerprint import fingerprint, function_modules
from styx.deployment.package_format import PACKAGE_BYTES_MAX
from styx.errors import ConfigurationError
from styx.model.app import App
from styx.model.limits import Limits
from styx.model.placement import placement_digest
from styx.schema.description import AppDescription, describe
from styx.schema.event_description import Published, published_of
from styx.store.base import NotFound, Store, StoreCorrupt, StoreReader

PREFIX: Final = "apps/"
_MAGIC: Final = b"STYXAPP1"
_DIGEST_BYTES: Final = 16
_DIGITS: Final = 10


class AppRecord(msgspec.Struct, frozen=True, kw_only=True):
    """One version of an app, with where sample keys of its operators go.

    `code` is what `styx.deployment.package.pack_code` gave on a Python of version `python`; None if the app could not
    be packed, for the reason that `problem` says. `fingerprint` is of `modules`. `converted` are operators of whose
    entities some were converted by a `migrate=`, this version's or an earlier one's. `published` are the schemas of the
    events of this version and of all before it.
    """

    version: int
    description: AppDescription
    placements: dict[str, str]
    limits: Limits
    modules: list[str]
    fingerprint: str
    python: str
    code: bytes | None
    problem: str
    converted: list[str] = []
    published: Published = {}


def is_code_of(record: AppRecord, app: App) -> bool:
    """Whether `app` is the code of this record."""
    return function_modules(app) <= set(record.modules) and fingerprint(app, record.modules) == record.fingerprint


def record_of(app: App, limits: Limits, version: int) -> AppRecord:
    """The record of `app` as it is; packs its code."""
    code, modules, problem = _packed(app)
    description = describe(app)
    return AppRecord(
        version=version,
        description=description,
        placements=placements(app),
        limits=limits,
        modules=modules,
        fingerprint=fingerprint(app, modules),
        python=python_version(),
        code=code,
        problem=problem,
        published=published_of(description.events),
    )


def placements(app: App) -> dict[str, str]:
    """For each operator a digest of where sample keys go, as `placement_digest` makes it."""
    return {
        name: placement_digest(one.key_type, one.key_space.partition_key) for name, one in sorted(app.operators.items())
    }


def python_version() -> str:
    """The version whose bytecode this process runs."""
    return f"{sys.implementation.name} {sys.version_info.major}.{sys.version_info.minor}"


def write_record(store: Store, record: AppRecord) -> None:
    """Durable when it returns."""
    body = msgspec.msgpack.encode(record)
    store.put(_name(record.version), _MAGIC + blake2b(body, digest_size=_DIGEST_BYTES).digest() + body)


def read_record(store: StoreReader, version: int) -> AppRecord | None:
    """The record of a version, None if there is none; raises `StoreCorrupt` if it is damaged."""
    name = _name(version)
    try:
        data = store.get(name)
    except NotFound:
        return None
    body = data[len(_MAGIC) + _DIGEST_BYTES :]
    if data[: -len(body)] != _MAGIC + blake2b(body, digest_size=_DIGEST_BYTES).digest():
        raise StoreCorrupt(name, "its checksum does not match")
    try:
        return msgspec.msgpack.decode(body, type=AppRecord)
    except msgspec.DecodeError as error:
        raise StoreCorrupt(name, f"a newer version of styx may have written it: {error}") from None


def versions(store: Store) -> list[int]:
    """The versions that have a record, ascending."""
    return sorted(int(name.removeprefix(PREFIX)) for name in store.list(PREFIX))


def delete_record(store: Store, version: int) -> None:
    """Removes the record of a version that nothing will be run on any more."""
    store.delete(_name(version))


def _packed(app: App) -> tuple[bytes | None, list[str], str]:
    """(code, modules that make the fingerprint, why there is no code)."""
    own = function_modules(app)
    try:
        from styx.deployment.package import pack_code

        packed = pack_code(app)
    except ConfigurationError as error:
        return None, sorted(own), str(error)
    modules = sorted(own | set(packed.modules))
    if len(packed.payload) > PACKAGE_BYTES_MAX:
        return None, modules, f"its code has {len(packed.payload)} bytes; the limit is {PACKAGE_BYTES_MAX}"
    installed = sorted(own - set(packed.modules))
    if installed:
        return None, modules, f"{installed[0]} is an installed module, of which only the name can be packed"
    return packed.payload, modules, ""


def _name(version: int) -> str:
    return f"{PREFIX}{version:0{_DIGITS}d}"
