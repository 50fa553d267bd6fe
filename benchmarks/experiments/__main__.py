"""`python -m benchmarks.experiments NAME`: one command for each experiment."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import Final, NamedTuple


class Experiment(NamedTuple):
    """`module` has `add_options(parser)` and `run(options)`, which gives the exit status."""

    module: str
    what: str


EXPERIMENTS: Final = {
    "latency": Experiment("latency", "latency against throughput, beside a process that only echoes"),
    "skew": Experiment("skew", "highest rate and latency against how few accounts are wanted"),
    "scaling": Experiment("scaling", "processor time, messages and bytes of a transaction on more and more workers"),
    "snapshots": Experiment("snapshots", "what a snapshot every second costs, and latency over time beside it"),
    "recovery": Experiment("recovery", "latency over time around a worker's death and replacement"),
    "overload": Experiment("overload", "twice the load that can be served: what is answered, refused, and how it ends"),
    "breakdown": Experiment("breakdown", "where a transaction's time goes"),
    "workloads": Experiment("workloads", "functions, messages, processor time and latency of each kind of transaction"),
    "marketplace": Experiment(
        "marketplace.command", "Online Marketplace as in the papers: settings side by side, a crash, and TPC-C"
    ),
    "targets": Experiment("targets.command", "the ratios that are to hold, each against its target"),
}
_PROGRAM: Final = "python -m benchmarks.experiments"


def main(arguments: Sequence[str] | None = None) -> int:
    """The command; returns the exit status."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    chosen = argparse.ArgumentParser(
        prog=_PROGRAM,
        description="Experiments that run unattended on one machine, with services of their own.",
        epilog="\n".join(f"{name:<12}{each.what}; {_PROGRAM} {name} --help" for name, each in EXPERIMENTS.items()),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    chosen.add_argument("name", choices=EXPERIMENTS, metavar="NAME", help=f"one of {', '.join(EXPERIMENTS)}")
    name: str = chosen.parse_args(words[:1]).name
    try:
        module = import_module(f"benchmarks.experiments.{EXPERIMENTS[name].module}")
    except ModuleNotFoundError as error:
        chosen.error(f"{name} needs {error.name}, from the extra 'bench'; scripts/experiments installs it")
    parser = argparse.ArgumentParser(prog=f"{_PROGRAM} {name}", description=module.__doc__)
    module.add_options(parser)
    return int(module.run(parser.parse_args(words[1:])))


if __name__ == "__main__":
    sys.exit(main())
