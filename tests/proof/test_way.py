"""The way of one request: how long it may be, that architecture.md lists it, and that a cluster's can be followed."""

from __future__ import annotations

import asyncio
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

from proof.way import Way, ways_in_cluster
from styx.native.form import PLAIN_VARIABLE
from tests.plain_form import plain_form
from tests.real_services import RealKafka

ROOT: Final = Path(__file__).parents[2]
FILES_MAX: Final = {"deposit": 50, "transfer": 51}
"""What a request passes, embedded and in memory. These only fall: a rise says that the way has become longer."""
FUNCTIONS_MAX: Final = {"deposit": 216, "transfer": 222}
CALLS_MAX: Final = {"deposit": 365, "transfer": 396}


@pytest.fixture(scope="module")
def ways() -> dict[str, Way]:
    """In a process of their own, in the plain form."""
    command = [sys.executable, "-m", "proof.way", "--json"]
    environment = {**os.environ, PLAIN_VARIABLE: "1"}
    done = subprocess.run(command, env=environment, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return {name: Way(map(tuple, passed)) for name, passed in json.loads(done.stdout).items()}


@pytest.mark.parametrize("name", FILES_MAX)
def test_how_long_it_is(ways: dict[str, Way], name: str) -> None:
    way = ways[name]
    limits = f"{FILES_MAX[name]} files, {FUNCTIONS_MAX[name]} functions, {CALLS_MAX[name]} calls"
    assert len(way.files) <= FILES_MAX[name], f"{limits}; now {way.counts()}"
    assert way.functions <= FUNCTIONS_MAX[name], f"{limits}; now {way.counts()}"
    assert len(way.passed) <= CALLS_MAX[name], f"{limits}; now {way.counts()}"


def listed() -> list[list[str]]:
    """The files of each item of the list in docs/architecture.md."""
    text = (ROOT / "docs/architecture.md").read_text("utf-8")
    section = text.partition("## Following one request\n")[2].partition("\n## ")[0]
    items = re.findall(r"^\d+\. (.*?)(?=^\d+\. |^\n)", section, re.DOTALL | re.MULTILINE)
    return [re.findall(r"`(styx/\S+\.py)`", item) for item in items]


def test_the_reading_list_is_the_way(ways: dict[str, Way]) -> None:
    """`scripts/way embedded` prints what has to stand in the list."""
    items, passed = listed(), list(ways["transfer"].files)
    assert set(passed) <= {file for item in items for file in item}, "passed, and not in the list"
    assert {file for item in items for file in item} <= set(passed), "in the list, and not passed"
    firsts = [passed.index(item[0]) for item in items]
    assert firsts == sorted(firsts), [item[0] for item in items]


def test_what_is_counted() -> None:
    way = Way([("a/one", "f"), ("a/two", "g"), ("a/two", "g"), ("b/one", "h"), ("a/two", "f")])
    assert way.files == {"a/one": ["f"], "a/two": ["g", "f"], "b/one": ["h"]}
    assert way.counts() == "3 files, 4 functions, 5 calls, 3 changes of file, 2 of folder"


@plain_form
@pytest.mark.slow
def test_in_a_cluster(kafka: RealKafka) -> None:
    found = asyncio.run(ways_in_cluster(kafka.bootstrap))
    assert found.keys() == FILES_MAX.keys()
    for way in found.values():
        files = list(way.files)
        assert files[0] == "styx/gateway/direct_calls.py"
        assert {"styx/kafka/appender.py", "styx/worker/validation.py", "styx/coordinator/barrier.py"} <= set(files)
