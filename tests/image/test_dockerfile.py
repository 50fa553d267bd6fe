"""What the Dockerfile promises, read from its text: nothing is built."""

from __future__ import annotations

import json
import re

import pytest

from tests.image.dockerfile import ROOT, Stage, copied, instructions, stages

TEXT = (ROOT / "Dockerfile").read_text("utf-8")
STAGES = stages(TEXT)
FINAL = STAGES[-1]
IGNORED = [
    line for line in (ROOT / ".dockerignore").read_text("utf-8").splitlines() if line and not line.startswith("#")
]


def run_of(stage: Stage) -> str:
    return "\n".join(stage.of("RUN"))


def test_every_stage_begins_with_the_chosen_python_or_with_an_earlier_stage() -> None:
    known = {"${PYTHON_IMAGE}"}
    for stage in STAGES:
        assert stage.base in known
        known.add(stage.name)
    assert instructions(TEXT)[0] == ("ARG", "PYTHON_IMAGE=docker.io/library/python:3.13-slim-trixie")
    assert FINAL.base == "${PYTHON_IMAGE}"


def test_nothing_is_installed_in_the_last_stage() -> None:
    assert not re.search(r"apt-get|apt |pip[\w.]* install|gcc", run_of(FINAL))
    assert not FINAL.of("ADD")
    # Nothing of the context either: what it has, earlier stages have made.
    assert copied(FINAL) == []


def test_the_base_s_pip_goes() -> None:
    removed = re.findall(r"rm -rf ([^;]*);", run_of(FINAL))
    words = {word for each in removed for word in each.split()}
    assert {'"$library"/ensurepip', '"$library"/site-packages/pip*', "/usr/local/bin/pip*"} <= words


def test_how_it_runs() -> None:
    assert FINAL.of("USER") == ["10001:10001"]
    assert FINAL.of("STOPSIGNAL") == ["SIGTERM"]
    assert FINAL.of("WORKDIR") == ["/app"]
    # As a list of words: with a shell between, SIGTERM would end the shell.
    assert [json.loads(each) for each in FINAL.of("ENTRYPOINT")] == [["styx"]]
    environment = dict(word.split("=", 1) for word in FINAL.of("ENV")[0].split())
    assert environment == {
        "PATH": "/opt/styx/bin:$PATH",
        "PYTHONPATH": "/app",
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONUNBUFFERED": "1",
        "HOME": "/tmp",
    }


def test_what_changes_often_comes_last() -> None:
    names = [stage.name for stage in STAGES]
    assert [re.findall(r"--from=(\w+)", rest)[0] for rest in FINAL.of("COPY")] == ["dependencies", "project"]
    assert copied(STAGES[names.index("dependencies")]) == ["requirements-image.lock"]
    in_project = copied(STAGES[names.index("project")])
    assert in_project.index("requirements-image-build.lock") < in_project.index("styx")


def test_packages_come_with_their_hashes() -> None:
    installs = re.findall(r"install [^&;]*\.lock", "\n".join(map(run_of, STAGES)))
    assert installs
    assert all("--require-hashes" in each for each in installs)
    # The project itself brings nothing along.
    assert all("--no-deps" in each for each in re.findall(r"pip wheel [^;]*|install [^;]*whl", run_of(STAGES[1])))


def test_a_build_without_the_compiled_form_fails() -> None:
    assert run_of(STAGES[1]).rstrip().endswith('[ "$form" = compiled ]')


def test_the_context_is_what_is_copied() -> None:
    assert IGNORED[0] == "*"
    allowed = {pattern.removeprefix("!") for pattern in IGNORED if pattern.startswith("!")}
    assert allowed == {source for stage in STAGES for source in copied(stage)}


@pytest.mark.parametrize("path", [".git", ".venv", "build", "tests", "results"])
def test_what_stays_out(path: str) -> None:
    allowed = [pattern.removeprefix("!") for pattern in IGNORED if pattern.startswith("!")]
    assert not any(each.split("/")[0] == path for each in allowed)


def test_what_is_made_here_stays_out() -> None:
    last_allowed = max(i for i, pattern in enumerate(IGNORED) if pattern.startswith("!"))
    for pattern in ("**/__pycache__", "styx/_compiled*"):
        assert IGNORED.index(pattern) > last_allowed


def test_the_example_is_two_lines() -> None:
    (example,) = stages((ROOT / "examples/baked/Dockerfile").read_text("utf-8"))
    assert example.base == "styx"
    assert example.instructions == [("COPY", "bank.py /app/")]
    assert (ROOT / "examples/bank.py").exists()
