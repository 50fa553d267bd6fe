"""`scripts/image` with engines that only note what they are told."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.image.dockerfile import ROOT

TOOLS = ("bash", "env", "git", "sed", "dirname")
"""All that the script may need beside an engine."""


class Machine:
    """A PATH on which the engines are those that a test puts there."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._folder.mkdir()
        for tool in TOOLS:
            found = subprocess.run(["which", tool], capture_output=True, text=True, check=True).stdout.strip()
            (folder / tool).symlink_to(found)

    def engine(self, name: str, works: bool = True) -> None:
        path = self._folder / name
        path.write_text(f'#!/bin/sh\n[ "$1" = version ] && exit {0 if works else 1}\necho {name} "$@"\n')
        path.chmod(0o755)

    def image(self, words: Sequence[str] = (), **environment: str) -> subprocess.CompletedProcess[str]:
        inherited = {k: v for k, v in os.environ.items() if not k.startswith("STYX_")}
        return subprocess.run(
            [ROOT / "scripts/image", *words],
            env={**inherited, "PATH": str(self._folder), **environment},
            capture_output=True,
            text=True,
            check=False,
        )


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path / "bin")


def test_docker_builds_if_it_works(machine: Machine) -> None:
    machine.engine("docker")
    machine.engine("podman")
    done = machine.image(["registry.example/styx:1", "--no-cache"])
    assert done.returncode == 0
    assert done.stdout.startswith("docker build --file Dockerfile --tag registry.example/styx:1 --build-arg VERSION=")
    assert done.stdout.endswith("--no-cache .\n")


@pytest.mark.parametrize(("engine", "verb"), [("podman", "build"), ("buildah", "bud")])
def test_docker_without_its_daemon_is_passed_over(machine: Machine, engine: str, verb: str) -> None:
    machine.engine("docker", works=False)
    machine.engine(engine)
    assert machine.image().stdout.startswith(f"{engine} {verb} --file Dockerfile --tag styx:")


def test_the_default_tag_is_the_version(machine: Machine) -> None:
    machine.engine("docker")
    version = re.findall(r'^__version__ = "(.*)"$', (ROOT / "styx/version.py").read_text("utf-8"), re.MULTILINE)[0]
    for words in ([], ["--no-cache"]):
        told = machine.image(words).stdout.split()
        assert told[told.index("--tag") + 1] == f"styx:{version}"
        assert f"VERSION={version}" in told


def test_an_engine_can_be_named(machine: Machine) -> None:
    machine.engine("docker")
    machine.engine("podman")
    assert machine.image(STYX_IMAGE_ENGINE="podman").stdout.startswith("podman build")
    wrong = machine.image(STYX_IMAGE_ENGINE="nerdctl")
    assert (wrong.returncode, wrong.stdout) == (2, "")
    assert "it can be docker, podman or buildah" in wrong.stderr


def test_without_an_engine_it_says_what_to_install(machine: Machine) -> None:
    done = machine.image()
    assert (done.returncode, done.stdout) == (1, "")
    assert "neither docker, podman nor buildah works here" in done.stderr
