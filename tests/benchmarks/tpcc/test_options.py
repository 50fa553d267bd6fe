"""The command line says what the workload is."""

from __future__ import annotations

import argparse

import pytest

from benchmarks.driver.command import main
from benchmarks.tpcc.options import add_options, make_workload
from benchmarks.tpcc.settings import CUSTOMERS, ITEMS, Settings
from benchmarks.tpcc.workload import TpcC
from styx import ConfigurationError
from styx.cli.app_target import load_app


def made_of(*arguments: str) -> TpcC:
    parser = argparse.ArgumentParser()
    add_options(parser)
    return make_workload(parser.parse_args(arguments))


def test_without_options_warehouses_are_small_and_there_are_several() -> None:
    workload = made_of()
    assert workload.settings == vars(Settings())
    assert workload.settings["warehouses"] > 1
    assert workload.settings["items"] < ITEMS


def test_every_option_arrives() -> None:
    text = (
        "--warehouses 3 --items 50 --customers 40 --mix payment --remote-item 0.1 --rollback 0.2 --remote-customer 0.3 "
        "--by-name 0.4 --at-home ordinary --data-seed 5"
    )
    assert made_of(*text.split()).settings == vars(Settings(3, 50, 40, "payment", 0.1, 0.2, 0.3, 0.4, "ordinary", 5))


def test_full_is_the_standards_size_and_goes_with_no_other() -> None:
    full = made_of("--full", "--warehouses", "10").settings
    assert (full["warehouses"], full["items"], full["customers"]) == (10, ITEMS, CUSTOMERS)
    for option in ("--items", "--customers"):
        with pytest.raises(ConfigurationError, match="leave --items and --customers out"):
            made_of("--full", option, "100")


def test_an_unknown_mix_is_refused_by_the_parser() -> None:
    with pytest.raises(SystemExit):
        made_of("--mix", "other")


def test_the_app_is_found_by_its_name_in_processes_of_their_own() -> None:
    workload = made_of()
    assert load_app(workload.app_target) is workload.app
    assert {loading.operator.name for loading in workload.initial()} == set(workload.app.operators)


def test_the_rate_is_one_that_an_engine_in_this_process_takes(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main("tpcc", add_options, make_workload, ["run", "--help"])
    text = " ".join(capsys.readouterr().out.split())
    assert "(default 200)" in text[text.rindex("--rate N ") :].split("--")[1]
