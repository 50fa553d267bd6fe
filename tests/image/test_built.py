"""The image itself: built by `scripts/image`, and run as a cluster runs it. Only if STYX_IMAGE_TESTS=1, and docker or
podman works: it takes minutes and a registry.

STYX_IMAGE_BUILD_OPTIONS: words for the build. STYX_IMAGE_RUN: the command that runs a container, if not `docker run` or
`podman run`. STYX_IMAGE: an image to look at, and nothing is built.
"""

from __future__ import annotations

import os
import shlex
import subprocess
from typing import Final

import pytest

from tests.image.dockerfile import ROOT

BUILD_SECONDS_MAX: Final = 1800
RUN_SECONDS_MAX: Final = 120
OPTIONS: Final = shlex.split(os.environ.get("STYX_IMAGE_BUILD_OPTIONS", ""))

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(BUILD_SECONDS_MAX),
    pytest.mark.skipif(
        os.environ.get("STYX_IMAGE_TESTS") != "1", reason="STYX_IMAGE_TESTS=1 builds and runs the image"
    ),
]


def engine() -> str:
    for name in ("docker", "podman"):
        try:
            subprocess.run([name, "version"], capture_output=True, check=True, timeout=RUN_SECONDS_MAX)
        except (OSError, subprocess.CalledProcessError):
            continue
        return name
    pytest.skip("neither docker nor podman works here")


@pytest.fixture(scope="module")
def image() -> str:
    if found := os.environ.get("STYX_IMAGE"):
        return found
    words = [str(ROOT / "scripts/image"), "styx", *OPTIONS]
    environment = {**os.environ, "STYX_IMAGE_ENGINE": engine()}
    subprocess.run(words, check=True, timeout=BUILD_SECONDS_MAX, env=environment)
    return "styx"


def run(image: str, *words: str, entrypoint: str = "styx") -> subprocess.CompletedProcess[str]:
    command = shlex.split(os.environ.get("STYX_IMAGE_RUN", "")) or [engine(), "run"]
    held = ["--rm", "--read-only", "--tmpfs", "/tmp", "--cap-drop", "ALL", "--security-opt", "no-new-privileges"]
    return subprocess.run(
        [*command, *held, "--entrypoint", entrypoint, image, *words],
        capture_output=True,
        text=True,
        timeout=RUN_SECONDS_MAX,
        check=False,
    )


def output(image: str, *words: str, entrypoint: str = "styx") -> str:
    done = run(image, *words, entrypoint=entrypoint)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_it_is_nobody_s_root(image: str) -> None:
    assert output(image, "-c", "id -u; id -g; pwd", entrypoint="sh").split() == ["10001", "10001", "/app"]


def test_only_tmp_is_written(image: str) -> None:
    assert run(image, "-c", "touch /app/x || touch /opt/styx/x", entrypoint="sh").returncode != 0
    assert output(image, "-c", "touch /tmp/x && echo $HOME", entrypoint="sh") == "/tmp"


def test_the_hot_modules_are_compiled(image: str) -> None:
    program = "import styx.native.form as c; print(c.describe(c.FORM))"
    assert output(image, "-c", program, entrypoint="python") == "compiled"


def test_no_module_is_compiled_to_bytecode_at_a_start(image: str) -> None:
    program = (
        "import sys, pathlib, styx.cli.cluster_process, styx.cluster.worker.process\n"
        "import styx.cluster.coordinator.process, styx.gateway.server, styx.cluster.gateway.process as _\n"
        "caches = [m.__spec__.cached for m in list(sys.modules.values()) if getattr(m, '__spec__', None)]\n"
        "print([c for c in caches if c and not pathlib.Path(c).exists()])"
    )
    assert output(image, "-c", program, entrypoint="python") == "[]"


def test_the_programs_are_there(image: str) -> None:
    assert output(image, "--version")
    for module in ("benchmarks.ycsbt", "benchmarks.tpcc"):
        assert "usage" in output(image, "-m", module, "--help", entrypoint="python")
    assert output(image, "-c", "import examples.bank as b; print(b.app.name)", entrypoint="python")


@pytest.mark.parametrize("program", ["gcc", "cc", "pip", "pip3", "mypy"])
def test_no_build_tool_is_there(image: str, program: str) -> None:
    assert run(image, "-c", f"command -v {program}", entrypoint="sh").returncode != 0


def test_an_app_is_baked_in(image: str) -> None:
    subprocess.run([engine(), "tag", image, "styx"], check=True, timeout=RUN_SECONDS_MAX)
    options = [*OPTIONS, "--tag", "styx-test-baked", "--file", str(ROOT / "examples/baked/Dockerfile")]
    command = [engine(), "build", *options, str(ROOT / "examples")]
    subprocess.run(command, check=True, timeout=BUILD_SECONDS_MAX)
    baked = output("styx-test-baked", "-c", "import bank; print(bank.__file__)", entrypoint="python")
    assert baked == "/app/bank.py"
