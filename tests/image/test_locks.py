"""The other locks are parts of requirements.lock: what was tested is what runs."""

from __future__ import annotations

import re

import pytest

from tests.image.dockerfile import ROOT


def pins(name: str) -> dict[str, frozenset[str]]:
    """Hashes by `PACKAGE==VERSION`, with its condition."""
    text = (ROOT / name).read_text("utf-8")
    found = re.split(r"^(?=[a-z0-9])", text, flags=re.MULTILINE)
    return {
        each.splitlines()[0].removesuffix("\\").strip(): frozenset(re.findall(r"sha256:\w+", each))
        for each in found
        if "==" in each.splitlines()[0]
    }


def names(name: str) -> set[str]:
    return {pin.partition("==")[0] for pin in pins(name)}


@pytest.mark.parametrize("part", ["requirements-run.lock", "requirements-image.lock", "requirements-image-build.lock"])
def test_it_has_the_same_versions_and_hashes(part: str) -> None:
    whole = {pin.partition(";")[0].strip(): hashes for pin, hashes in pins("requirements.lock").items()}
    assert pins(part)
    for pin, hashes in pins(part).items():
        assert hashes
        assert whole[pin.partition(";")[0].strip()] == hashes


def test_what_a_cluster_its_clients_and_the_load_import_is_there() -> None:
    wanted = {"msgspec", "uvloop", "aiokafka", "minio", "starlette", "aiohttp", "cyclopts", "cloudpickle"}
    assert wanted | {"hdrhistogram", "psutil"} <= names("requirements-image.lock")


def test_what_only_development_needs_is_not() -> None:
    unwanted = {"pip", "mypy", "pytest", "ruff", "hatchling", "hypothesis", "httpx", "locust", "matplotlib", "numpy"}
    assert not unwanted & names("requirements-image.lock")
