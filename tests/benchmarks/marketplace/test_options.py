"""The options, and what the processes of one command have in common."""

from __future__ import annotations

import argparse
import copy
import gc
from pathlib import Path
from typing import Any

import pytest

from benchmarks.driver.workload import Generator
from benchmarks.marketplace.driving.workload import Marketplace
from benchmarks.marketplace.options import add_options, make_workload
from benchmarks.marketplace.provider.own import PROVIDER_VARIABLE, provided, provider_of
from benchmarks.marketplace.record import Kind
from styx.errors import ConfigurationError


def options(*words: str, **others: Any) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    add_options(parser)
    return argparse.Namespace(**vars(parser.parse_args(words)), **others)


def elsewhere(given: argparse.Namespace) -> Marketplace:
    """What a client process makes of the parent's options."""
    return make_workload(copy.deepcopy(given))


def first_session(generator: Generator) -> str:
    while (planned := generator.next()).kind != Kind.ADD:
        pass
    return str(planned.note.sent.session)


def test_each_command_has_a_name_that_all_its_processes_use() -> None:
    given, other = options("--size", "0.001"), options("--size", "0.001")
    here, there = make_workload(given), elsewhere(given)
    make_workload(other)
    assert first_session(here.generator(0, 1, 1)) == first_session(there.generator(0, 1, 1))
    assert given.run_name != other.run_name


@pytest.mark.parametrize("on", ["cluster", "kafka://127.0.0.1:9092"])
def test_a_client_of_kafka_does_not_read_outside_the_log(on: str) -> None:
    words = ("--size", "0.01", "--dashboard", "read")
    with pytest.raises(ConfigurationError, match="--dashboard read needs clients of a gateway: give --gateway"):
        make_workload(options(*words, on=on, gateway=False))
    for allowed in (options(*words), options(*words, on="embedded"), options(*words, on="cluster", gateway=True)):
        generator = make_workload(allowed).generator(0, 1, 1)
        while (planned := generator.next()).kind != Kind.DASHBOARD:
            assert not planned.outside
        assert planned.outside


def test_dashboards_in_sql_need_a_replica() -> None:
    words = ("--size", "0.01", "--dashboard", "sql")
    with pytest.raises(ConfigurationError, match="--dashboard sql needs a replica: give --replica own"):
        make_workload(options(*words, replica=None))
    generator = make_workload(options(*words, replica="own")).generator(0, 1, 1)
    while (planned := generator.next()).kind != Kind.DASHBOARD:
        assert planned.query is None
    assert planned.query is not None
    assert planned.query.parameters == (planned.key,)
    assert not planned.outside
    with pytest.raises(ConfigurationError, match="--dashboard is one of transaction, read, sql, got page"):
        make_workload(options("--dashboard", "page"))


def test_several_clients_map_one_file_that_goes_with_the_command() -> None:
    given = options("--size", "0.001", clients=2)
    here = make_workload(given)
    file = Path(given.mirror_file)
    assert file.stat().st_size == 10 * 8
    there = elsewhere(given)
    assert there.settings == here.settings
    del there
    gc.collect()
    assert file.exists(), "it is the parent's"
    del here
    gc.collect()
    assert not file.exists()


def test_one_client_needs_no_file() -> None:
    given = options("--size", "0.001", clients=1)
    make_workload(given)
    assert not hasattr(given, "mirror_file")


def test_the_settings_of_a_result_are_those_of_the_options() -> None:
    settings = make_workload(options("--mix", "b", "--seller-zipf", "1.2", "--size", "0.001")).settings
    assert (settings["mix"], settings["skew"]["sellers"], settings["planned"]["price"]) == ("b", 1.2, 0.3)


def test_a_provider_that_runs_is_in_the_environment_during_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(PROVIDER_VARIABLE, "http://usual")
    with provided(["run", "--provider", "http://other", "--rate", "5"]):
        assert provider_of(options("--provider", "http://other")) == "http://other"
        assert provider_of(options()) == "http://other"
    assert provider_of(options()) == "http://usual"
    with provided(["run", "--rate", "5"]):
        assert provider_of(options()) == "http://usual"


def test_an_own_provider_is_for_the_command_that_starts_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(PROVIDER_VARIABLE, raising=False)
    assert provider_of(options()) == ""
    with pytest.raises(ConfigurationError, match="elsewhere give its URL"):
        provider_of(options("--provider", "own"))
