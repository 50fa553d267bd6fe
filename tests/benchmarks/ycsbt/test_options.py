"""The command line says what the workload is."""

from __future__ import annotations

import argparse

import pytest

from benchmarks.ycsbt.options import add_options, make_workload
from benchmarks.ycsbt.settings import Settings
from benchmarks.ycsbt.workload import YcsbT
from styx import ConfigurationError


def made_of(*arguments: str) -> YcsbT:
    parser = argparse.ArgumentParser()
    # The driver's, in every subcommand.
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--slots", type=int, default=4)
    add_options(parser)
    return make_workload(parser.parse_args(arguments))


def test_without_options_it_is_that_of_the_paper() -> None:
    workload = made_of()
    assert workload.settings == vars(Settings())
    assert workload.settings["keys"] == 10_000
    assert workload.app_target == "benchmarks.ycsbt.bank:app"
    (loading,) = workload.initial()
    assert loading.size == len(list(loading.pairs)) == 10_000


def test_every_option_arrives() -> None:
    text = (
        "--keys 500 --balance 7 --zipf 0.9 --hot 50 --multi-partition 0.4 --slots 8 --read-only 0.1 --read-keys 3 "
        "--overdraft 0.2 --wait --partitions 6 --audit-keys 11"
    )
    assert made_of(*text.split()).settings == vars(Settings(500, 7, 0.9, 50, 0.4, 8, 0.1, 3, 0.2, True, 6, 11))


def test_keys_can_grow_with_the_workers() -> None:
    assert made_of("--keys-per-worker", "300", "--workers", "3").settings["keys"] == 900
    with pytest.raises(ConfigurationError, match="--keys-per-worker is 1 or more"):
        made_of("--keys-per-worker", "0")
    with pytest.raises(SystemExit):
        made_of("--keys-per-worker", "300", "--keys", "5")


def test_processes_of_their_own_get_the_same_partitions() -> None:
    assert made_of("--partitions", "6").app_target == "benchmarks.ycsbt.bank:partitions_6"
    assert made_of("--partitions", "6").app.operators["account"].n_partitions == 6
