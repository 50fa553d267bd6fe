"""Online Marketplace, and TPC-C as the vMODB paper runs it: settings side by side, each in runs of its own.

    scripts/experiments marketplace skew
    scripts/experiments marketplace vmodb-tpcc --window 10 --runs 3
    scripts/experiments marketplace logging --on cluster --more "--size 1 --provider own"

Each run is the workload's own command in a new process: it loads, warms up, measures and audits. Settings that are
compared take turns. The loop is closed, as in the papers: `--concurrency` requests are under way all the time.
"""

from __future__ import annotations

import argparse
from functools import partial
from typing import Final

from benchmarks.experiments.bench import Bench
from benchmarks.experiments.marketplace import crash
from benchmarks.experiments.marketplace.experiment import CLUSTER, EMBEDDED, Experiment
from benchmarks.experiments.marketplace.measured import Measured
from benchmarks.experiments.marketplace.shown import show
from benchmarks.experiments.marketplace.step import Cell, measure_step
from benchmarks.experiments.marketplace.table import TABLE
from benchmarks.experiments.numbers import WORKERS_MAX, numbers_of
from benchmarks.experiments.report import carry_out
from benchmarks.experiments.settings import Common
from benchmarks.experiments.settings import add_options as add_common_options
from benchmarks.experiments.turns import turns
from styx.embedded_engine.options import N_SLOTS_DEFAULT
from styx.errors import ConfigurationError

CONCURRENCY_DEFAULT: Final = 48
"""The level at which the paper's best platform is fastest."""


def add_options(parser: argparse.ArgumentParser) -> None:
    """The command's options."""
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = "experiments:\n" + "\n".join(f"  {name:<19}{each.what}" for name, each in TABLE.items())
    add = parser.add_argument
    add("which", choices=TABLE, metavar="WHICH", help="the experiment, one of those below")
    add(
        "--on",
        choices=(EMBEDDED, CLUSTER),
        help="an engine in the run's process, which needs no services, or a cluster with services of its own "
        "(default: embedded, but for scaling and crash)",
    )
    add("--workers", type=int, default=2, metavar="N", help="of a cluster (default %(default)s)")
    add(
        "--concurrency",
        type=int,
        default=CONCURRENCY_DEFAULT,
        metavar="N",
        help="requests at once (default %(default)s; some experiments go through several, or need more)",
    )
    add("--numbers", metavar="N,N", help="what the experiment goes through, such as exponents (default: its own)")
    add(
        "--more",
        default="",
        metavar="WORDS",
        help='further options of the workload\'s own command, such as "--size 1"',
    )
    crash.add_options(parser)
    add_common_options(parser, Common(runs=2, window_s=4.0, warm_up_s=2.0, slots=N_SLOTS_DEFAULT))


def run(options: argparse.Namespace) -> int:
    """Measures, writes and prints; the exit status."""
    experiment, name = TABLE[options.which], f"marketplace-{options.which}"
    if experiment.dies:
        return carry_out(name, options, partial(_measure_crash, experiment), partial(crash.show, name, experiment))
    return carry_out(name, options, partial(_measure, experiment), partial(show, name, experiment))


def cells_of(experiment: Experiment, options: argparse.Namespace) -> list[Cell]:
    """What is measured, number by number. Raises `ConfigurationError` for options that no run would take."""
    _check(experiment, options)
    numbers = _numbers(experiment, options)
    return [Cell(experiment, setting, number) for number in numbers for setting in experiment.settings]


async def _measure(experiment: Experiment, bench: Bench, options: argparse.Namespace, found: list[Measured]) -> None:
    cells = cells_of(experiment, options)
    pairs = [(cell, Measured(setting=cell.setting.name, number=cell.number)) for cell in cells]
    for number, order in turns(bench.common.runs, pairs):
        for cell, measured in order:
            measured.add(await measure_step(bench, options, cell), experiment.apart)
            if number == 1:
                found.append(measured)


async def _measure_crash(
    experiment: Experiment, bench: Bench, options: argparse.Namespace, found: list[crash.Crashed]
) -> None:
    (cell,) = cells_of(experiment, options)
    await crash.measure(cell, bench, options, found)


def _check(experiment: Experiment, options: argparse.Namespace) -> None:
    if experiment.on == CLUSTER and options.on == EMBEDDED:
        raise ConfigurationError(f"{options.which} needs the workers of a cluster: leave --on {EMBEDDED} out")
    if not 1 <= options.workers <= WORKERS_MAX:
        raise ConfigurationError(f"--workers is a number from 1 to {WORKERS_MAX}, got {options.workers}")
    if options.concurrency < 1:
        raise ConfigurationError(f"--concurrency is a number from 1 on, got {options.concurrency}")


def _numbers(experiment: Experiment, options: argparse.Namespace) -> list[float | None]:
    numbers = experiment.numbers
    if numbers is None:
        if options.numbers is not None:
            raise ConfigurationError(f"{options.which} goes through no numbers: leave --numbers out")
        return [None]
    text = numbers.default if options.numbers is None else options.numbers
    return [*numbers_of("--numbers", text, numbers.least, numbers.most)]
