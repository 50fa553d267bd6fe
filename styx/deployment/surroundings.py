"""Requirements of a package for the process that unpacks it: the same Python, and the distributions that its code
imports."""

from __future__ import annotations

import sys

from styx.deployment.package_format import Dependency, PackageHeader, PackageRefused
from styx.deployment.user_code import installed_version
from styx.version import __version__


def python_version() -> str:
    """Major and minor version of the Python that runs."""
    return f"{sys.version_info.major}.{sys.version_info.minor}"


def styx_version() -> str:
    """This library's version."""
    return __version__


def check_surroundings(header: PackageHeader) -> list[str]:
    """Warnings about what differs here from where the package was made.

    Raises `PackageRefused` if the app could not run here.
    """
    if header.python != python_version():
        raise PackageRefused(
            f"the package was made with Python {header.python} and this is {python_version()}, which cannot run its "
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
    import cloudpickle

    for name, packed, here in (
        ("styx", header.styx, __version__),
        ("cloudpickle", header.cloudpickle, cloudpickle.__version__),
    ):
        if packed != here:
            warnings.append(f"the package was made with {name} {packed}, and {here} is installed here")
    return warnings


def _version_here(dependency: Dependency) -> str | None:
    """The installed version; empty if there is only a module without metadata, None if it is missing."""
    from importlib.machinery import PathFinder

    if dependency.version:
        return installed_version(dependency.distribution)
    return "" if all(PathFinder.find_spec(module) is not None for module in dependency.modules) else None
