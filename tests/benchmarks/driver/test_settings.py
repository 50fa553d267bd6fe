"""The options of a command, made of a dataclass of settings."""

from __future__ import annotations

import argparse
from dataclasses import dataclass

import pytest

from benchmarks.driver.settings import add_options_of, options_of, require_shares, setting, settings_from, share
from styx.errors import ConfigurationError


@dataclass(frozen=True)
class Settings:
    key_count: int = setting(10, "number of keys (default %(default)s)")
    apart: float | None = share(None, "of the transfers (default: any)")
    mix: str = setting("a", "which (default %(default)s)", choices={"a": 1, "b": 2})
    slots: int = 4
    wait: bool = setting(False, "wait for it")

    def __post_init__(self) -> None:
        require_shares(self, "0.5 for 50 %", "apart")


def parsed(*words: str) -> Settings:
    parser = argparse.ArgumentParser()
    add_options_of(parser.add_argument_group("x"), options_of(Settings))
    return settings_from(Settings, parser.parse_args(words), slots=7)


def test_fields_with_a_help_are_options() -> None:
    assert parsed() == Settings(slots=7)
    given = parsed("--key-count", "3", "--apart", "0.25", "--mix", "b", "--wait")
    assert given == Settings(key_count=3, apart=0.25, mix="b", slots=7, wait=True)


@pytest.mark.parametrize("words", [["--key-count", "x"], ["--mix", "c"], ["--slots", "1"], ["--wait", "1"]])
def test_what_is_no_option_is_refused(words: list[str]) -> None:
    with pytest.raises(SystemExit):
        parsed(*words)


@pytest.mark.parametrize("value", [-0.1, 1.1, float("nan")])
def test_a_share_is_from_0_to_1(value: float) -> None:
    with pytest.raises(ConfigurationError, match=r"the share --apart is from 0 to 1, such as 0\.5 for 50 %; got"):
        Settings(apart=value)
