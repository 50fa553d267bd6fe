"""Packing an app into bytes that another process can run it from, and unpacking it there.

The contents of the app's own modules are packed by value, as they were at import. Installed distributions are listed in
the header, and must be installed where the package is unpacked. Nothing is unpickled before its signature is verified.
A function may import the app's own modules when it runs, but not by `importlib`, and pickle cannot find its classes.
"""

from __future__ import annotations

import hashlib
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from importlib.machinery import PathFinder
from typing import Final, NamedTuple

import msgspec

from styx.deployment.fingerprint import source_of
from styx.deployment.package_format import Dependency, PackageHeader, PackageRefused, seal, unseal
from styx.deployment.user_code import dependencies, installed_version, user_modules
from styx.errors import ConfigurationError
from styx.model.app import App
from styx.model.limits import MIB
from styx.schema.description import AppDescription, describe, routing_table
from styx.version import __version__

try:
    import cloudpickle
except ModuleNotFoundError as error:
    raise ConfigurationError(f"packing an app's code needs {error.name}: pip install {error.name}") from None

from styx.deployment.pickler import AppPickler
from styx.deployment.unpickler import AppUnpickler

DEPTH_MAX: Final = 10_000
"""How deep the pickler may call itself."""
PYTHON: Final = f"{sys.version_info.major}.{sys.version_info.minor}"
_STACK_BYTES: Final = 64 * MIB
_packing: Final = threading.Lock()
"""Held while an app is packed: cloudpickle's list of modules to pack by value is the whole process's."""


class AppCode(NamedTuple):
    """An app as bytes: a package's payload, the modules that are in it, and those that it imports."""

    payload: bytes
    modules: list[str]
    imported: set[str]


def pack(app: App, secret: bytes) -> bytes:
    """The package of `app`, signed with the cluster's secret.

    Raises `ConfigurationError` if something that the app refers to cannot be packed, or if it is too large.
    """
    description = describe(app)
    code = pack_code(app)
    header = PackageHeader(
        description=description,
        python=PYTHON,
        cloudpickle=cloudpickle.__version__,
        styx=__version__,
        dependencies=dependencies(code.imported),
        modules=code.modules,
        fingerprint=_fingerprint(description, code.modules, code.payload),
    )
    return seal(header, code.payload, secret)


def pack_code(app: App) -> AppCode:
    """The payload of a package alone, which only this machine's Python is meant to unpack. Raises as `pack`."""
    pickler = AppPickler(app)
    with _packing, _by_value():
        payload = _with_depth(pickler.pickled)
    named = _prove(app.name, payload)
    return AppCode(payload, sorted(pickler.own_modules), pickler.foreign_modules | named)


def unpack_code(payload: bytes) -> App:
    """As `unpack`, for the payload that `pack_code` made; the caller trusts the bytes. Raises `PackageRefused`."""
    return AppUnpickler(payload).unpickled()


def unpack(data: bytes, secret: bytes) -> App:
    """The app in a package that was signed with `secret`: new objects each time, which nothing else can reach.

    Raises `PackageRefused` for bytes that are no such package, and for one that cannot run here.
    """
    header, payload = unseal(data, secret)
    check_surroundings(header)
    return AppUnpickler(payload).unpickled()


def read_header(data: bytes, secret: bytes) -> PackageHeader:
    """The header of a package, whose payload is left alone. Raises `PackageRefused`."""
    return unseal(data, secret)[0]


@contextmanager
def _by_value() -> Iterator[None]:
    """Has cloudpickle pickle the app's own modules by value meanwhile."""
    before = cloudpickle.list_registry_pickle_by_value()
    registered = []
    try:
        for name, module in user_modules().items():
            if name not in before:
                cloudpickle.register_pickle_by_value(module)
                registered.append(module)
        yield
    finally:
        for module in registered:
            cloudpickle.unregister_pickle_by_value(module)


def _with_depth(pickled: Callable[[], bytes]) -> bytes:
    """Runs the pickler with room for long chains of functions that use each other: each takes six calls or so."""
    before = sys.getrecursionlimit(), threading.stack_size(_STACK_BYTES)
    try:
        sys.setrecursionlimit(max(before[0], DEPTH_MAX))
        with ThreadPoolExecutor(1) as thread:
            return thread.submit(pickled).result()
    finally:
        sys.setrecursionlimit(before[0])
        threading.stack_size(before[1])


def _prove(name: str, payload: bytes) -> set[str]:
    """Unpacks it once: what cannot be rebuilt is told to the author now, and not by a worker later.

    Gives the modules that it named.
    """
    unpickler = AppUnpickler(payload)
    try:
        unpickler.unpickled()
    except PackageRefused as error:
        raise ConfigurationError(f"app {name!r} cannot be packed: {error}") from error
    return unpickler.named_modules


def _fingerprint(description: AppDescription, modules: Iterable[str], payload: bytes) -> str:
    """SHA-256 of the app's operators, functions' hints, crons, subscriptions, graphs and modules' sources; of the
    payload if one has no source.
    """
    digest = hashlib.sha256(routing_table(description).encode())
    for name, operator in sorted(description.operators.items()):
        told = (name, sorted(operator.hints.items()), operator.subscriptions, operator.crons)
        digest.update(msgspec.msgpack.encode(told))
    digest.update(msgspec.msgpack.encode(sorted(description.graphs.items())))
    sources = [source_of(name) for name in modules]
    for name, source in zip(modules, sources, strict=True):
        digest.update(msgspec.msgpack.encode((name, source)))
    if None in sources:
        digest.update(payload)
    return digest.hexdigest()


def check_surroundings(header: PackageHeader) -> list[str]:
    """Compares this process with the one that made the package: the same Python, and the distributions that its code
    imports. Returns warnings about differences.

    Raises `PackageRefused` if the app could not run here.
    """
    if header.python != PYTHON:
        raise PackageRefused(
            f"the package was made with Python {header.python} and this is {PYTHON}, which cannot run its "
            "bytecode: pack it and run it with one minor version of Python, in a cluster the one that it began with"
        )
    warnings = []
    missing = []
    for one in header.dependencies:
        here = _version_here(one)
        if here is None:
            missing.append(f"{one.distribution}{'==' if one.version else ''}{one.version}")
        elif here != one.version:
            warnings.append(f"the package was made with {one.distribution} {one.version}, and {here} is installed here")
    if missing:
        raise PackageRefused(f"the app needs what is not installed here: pip install {' '.join(missing)}")
    for name, packed, here in (
        ("styx", header.styx, __version__),
        ("cloudpickle", header.cloudpickle, cloudpickle.__version__),
    ):
        if packed != here:
            warnings.append(f"the package was made with {name} {packed}, and {here} is installed here")
    return warnings


def _version_here(dependency: Dependency) -> str | None:
    """The installed version; empty if there is only a module without metadata, None if it is missing."""
    if dependency.version:
        return installed_version(dependency.distribution)
    return "" if all(PathFinder.find_spec(module) is not None for module in dependency.modules) else None
