"""The name of the distribution and its extras: what messages and the template say is what pyproject.toml declares."""

import re
import tomllib
from pathlib import Path

import pytest

from styx.process.extras import DISTRIBUTION, lacking

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]


def test_the_distribution_is_called_so() -> None:
    assert PROJECT["name"] == DISTRIBUTION


def test_what_to_install() -> None:
    assert lacking("It", "aiohttp", "client") == (
        "It lacks aiohttp: pip install 'styx-dataflow[client]', or pip install '.[client]' in a clone"
    )


@pytest.mark.parametrize("path", ["pyproject.toml", "styx/cli/project_template/pyproject.toml.template"])
def test_a_requirement_is_this_project_and_its_extras(path: str) -> None:
    text = (ROOT / path).read_text("utf-8")
    requirements = re.findall(r'"([\w-]+)\[([\w,]+)\]', text)
    own = [(name, extras) for name, extras in requirements if name not in ("PyJWT", "psycopg")]
    assert own
    for name, extras in own:
        assert name == DISTRIBUTION
        assert set(extras.split(",")) <= PROJECT["optional-dependencies"].keys()
