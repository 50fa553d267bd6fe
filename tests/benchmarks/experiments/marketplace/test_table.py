"""Each line of the table gives words that the workload's command takes, and does what its name says."""

from __future__ import annotations

import argparse
from importlib import import_module

import pytest

from benchmarks.driver import options as driver_options
from benchmarks.driver.command import parser
from benchmarks.driver.workload import Workload
from benchmarks.experiments.marketplace.command import add_options, cells_of
from benchmarks.experiments.marketplace.experiment import CLUSTER
from benchmarks.experiments.marketplace.step import Cell, words_of
from benchmarks.experiments.marketplace.table import TABLE
from benchmarks.experiments.settings import common_of


def asked(which: str, *words: str) -> argparse.Namespace:
    made = argparse.ArgumentParser()
    add_options(made)
    return made.parse_args([which, *words])


CELLS = [
    pytest.param(which, cell, id=f"{which}: {cell.name}")
    for which, experiment in TABLE.items()
    for cell in cells_of(experiment, asked(which))
]


def workload_of(cell: Cell, words: list[str]) -> tuple[argparse.Namespace, Workload]:
    """As the command makes it of these words."""
    module = import_module(f"benchmarks.{cell.experiment.workload}.options")
    options = parser(cell.experiment.workload, module.add_options).parse_args(["run", *words])
    driver_options.check(options)
    return options, module.make_workload(options)


@pytest.mark.parametrize(("which", "cell"), CELLS)
def test_the_command_takes_the_words(which: str, cell: Cell) -> None:
    given = asked(which)
    options, workload = workload_of(cell, words_of(cell, common_of(given), given))
    assert workload.name == cell.experiment.workload
    assert options.on == cell.experiment.on
    plan = driver_options.plan_of(options, options.rate)
    assert (plan.concurrency is None) == cell.experiment.open
    numbers = cell.experiment.numbers
    if numbers is not None:
        assert getattr(options, numbers.option.removeprefix("--").replace("-", "_")) == cell.number


@pytest.mark.parametrize("which", [name for name, each in TABLE.items() if each.apart])
def test_a_kind_apart_is_lacking_in_the_first_setting_alone(which: str) -> None:
    experiment, given = TABLE[which], asked(which)
    (without, with_it) = (
        {*workload_of(cell, words_of(cell, common_of(given), given))[1].settings["planned"]}
        for cell in cells_of(experiment, given)[:2]
    )
    assert with_it - without == {experiment.apart}


def test_writers_come_at_one_rate_whichever_way_dashboards_are_asked_for() -> None:
    given = asked("dashboard-ways")
    writers, ways = set(), []
    for cell in cells_of(TABLE["dashboard-ways"], given):
        options, workload = workload_of(cell, words_of(cell, common_of(given), given))
        planned = workload.settings["planned"]
        share = planned.get("dashboard", 0.0) / sum(planned.values())
        writers.add(round(options.rate * (1 - share), 6))
        ways.append((bool(share), options.dashboard))
    assert writers == {12.48}
    assert ways == [(False, "transaction"), (True, "transaction"), (True, "read"), (True, "sql")]


def test_an_epoch_can_be_filled() -> None:
    for which in ("epochs", "vmodb-epochs"):
        *_, last = cells_of(TABLE[which], asked(which))
        options, _ = workload_of(last, words_of(last, common_of(asked(which)), asked(which)))
        assert options.concurrency >= options.epoch_transactions


def test_what_the_user_asks_for_stands_above_the_experiment_but_for_its_numbers() -> None:
    given = asked("vmodb-concurrency", "--more", "--concurrency 7 --mix a --size 0.02", "--window", "3", "--no-audit")
    cell = cells_of(TABLE["vmodb-concurrency"], given)[-1]
    options, _ = workload_of(cell, words_of(cell, common_of(given), given))
    assert (options.mix, options.size, options.duration, options.no_audit) == ("a", 0.02, 3.0, True)
    assert options.concurrency == cell.number


def test_a_cluster_has_workers_and_a_longer_warm_up_for_its_new_broker() -> None:
    given = asked("logging", "--on", CLUSTER, "--workers", "3", "--clients", "2", "--warm-up", "1")
    cell = cells_of(TABLE["logging"], given)[0]
    options, _ = workload_of(cell, words_of(cell, common_of(given), given))
    assert (options.on, options.workers, options.clients) == (CLUSTER, 3, 2)
    assert options.warm_up > 5
