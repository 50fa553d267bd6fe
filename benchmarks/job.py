"""`python -m benchmarks.job WORKLOAD --on URL`: one workload on a deployment that runs, from nothing to its audit.

It waits until the deployment serves, then runs the workload's subcommands `load`, `run` and `audit`. It needs no
terminal and writes only temporary files, so that a Job in Kubernetes can run it. The last line of its output is JSON.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, Final

import msgspec

from benchmarks.driver.command import FAILED, INTERRUPTED, OK, USAGE, execute, parser, quieten
from benchmarks.driver.deployment.choose import deployed
from benchmarks.driver.options import check
from benchmarks.driver.result import Result, read
from benchmarks.driver.serving import until_serving
from benchmarks.driver.session import MakeWorkload
from benchmarks.driver.target import Outcome
from styx.cli.serving import run_loop
from styx.errors import ConfigurationError

DEFAULTS: Final = {
    "ycsbt": ("--rate", "500"),
    "tpcc": ("--rate", "50", "--warehouses", "2"),
    "deathstar.hotel": ("--rate", "200"),
    "deathstar.movie": ("--rate", "200"),
    "marketplace": ("--rate", "20"),
}
"""The default options by workload, for two small workers on two processors. Options after `--` override them."""
DURATION_DEFAULT: Final = ("--duration", "30")
WAIT_SECONDS_DEFAULT: Final = 300.0
_EPILOG: Final = """\
What follows `--` goes to the workload's own command, such as `-- --rate 100 --slots 16`; each of load, run and audit
takes what it knows. `python -m benchmarks.WORKLOAD run --help` lists it.
STYX_KAFKA_USERNAME and STYX_KAFKA_PASSWORD are those of the brokers, if they ask for them.

exit status, the worst of all steps:
  0    every request was answered, once, and the audit passed
  1    not so, or the deployment did not serve in time
  2    an option is wrong, or another app is deployed there
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command; returns the exit status."""
    own, further = _split(list(sys.argv[1:] if arguments is None else arguments))
    options = _parser().parse_args(own)
    quieten()
    with tempfile.TemporaryDirectory(prefix="styx-benchmark-") as folder:
        job = Job(options.workload, options.on, further, Path(folder))
        statuses = job.run(options.wait)
        facts = {"workload": options.workload, **job.facts(), "steps": statuses, "status": max(statuses.values())}
    print(f"job          {', '.join(f'{step} {_word(status)}' for step, status in statuses.items())}")
    print(msgspec.json.encode(facts).decode(), flush=True)
    return max(statuses.values())


class Job:
    """The steps of a workload on the deployment at `on`; files between them are in `folder`."""

    def __init__(self, workload: str, on: str, words: Sequence[str], folder: Path) -> None:
        module = import_module(f"benchmarks.{workload}.options")
        self._make_workload: MakeWorkload = module.make_workload
        self._result = folder / "result.json"
        witness = ["--witness", str(folder / "witness")]
        known = parser(workload, module.add_options)
        common = [*DURATION_DEFAULT, *DEFAULTS[workload], *words, "--on", on]
        # `run` has all options, so it reports unknown ones.
        run = known.parse_args(["run", *common, "--loaded", "--no-audit", "--out", str(self._result), *witness])
        load, _ = known.parse_known_args(["load", *common])
        audit, _ = known.parse_known_args(["audit", *common, *witness])
        self._steps: dict[str, argparse.Namespace] = {"load": load, "run": run, "audit": audit}
        self._seconds: dict[str, float] = {}

    def run(self, wait_s: float) -> dict[str, int]:
        """The exit status of each step. No step follows a failed load, or a deployment that does not serve."""
        statuses = {"wait": self._wait(wait_s)}
        for step, options in self._steps.items():
            if statuses["wait"] != OK or statuses.get("load", OK) != OK or INTERRUPTED in statuses.values():
                break
            print(f"job          {step}", flush=True)
            began_s = time.monotonic()
            statuses[step] = execute(options, self._make_workload)
            self._seconds[step] = round(time.monotonic() - began_s, 3)
        return statuses

    def facts(self) -> dict[str, Any]:
        """The figures of the run, as far as there are any."""
        facts: dict[str, Any] = {"seconds": self._seconds}
        if not self._result.exists():
            return facts
        result = read(self._result)
        assert isinstance(result, Result)
        return facts | {
            "rate": result.plan.rate,
            "throughput": round(result.throughput, 1),
            "committed_rate": round(result.committed_rate, 1),
            "p50_ms": result.answered.p50_us / 1000,
            "p99_ms": result.answered.p99_us / 1000,
            "max_ms": result.answered.max_us / 1000,
            "sent": result.sent,
            "aborted": result.outcomes.get(Outcome.ABORTED, 0),
            "shed": result.shed,
            "missed": result.missed,
            "duplicated": result.duplicated,
            "interpreter": result.environment.interpreter,
        }

    def _wait(self, wait_s: float) -> int:
        options = self._steps["load"]

        async def wait() -> None:
            workload = self._make_workload(options)
            async with deployed(options, workload) as deployment:
                await until_serving(deployment.open_client, workload, wait_s, _say)

        try:
            check(options)
            run_loop(wait())
        except ConfigurationError as error:
            return _told(str(error), USAGE)
        except TimeoutError as error:
            return _told(str(error), FAILED)
        except KeyboardInterrupt:
            return _told("interrupted", INTERRUPTED)
        return OK


def _split(words: list[str]) -> tuple[list[str], list[str]]:
    """The words before `--`, and those after it."""
    end = words.index("--") if "--" in words else len(words)
    return words[:end], words[end + 1 :]


def _parser() -> argparse.ArgumentParser:
    known = argparse.ArgumentParser(
        prog="python -m benchmarks.job",
        usage="%(prog)s WORKLOAD --on URL [--wait SECONDS] [-- ARGUMENT ...]",
        description="Waits until a deployment of the workload's app serves, loads its data set, runs it, and audits.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    known.add_argument("workload", choices=tuple(DEFAULTS), metavar="WORKLOAD", help=", ".join(DEFAULTS))
    known.add_argument("--on", required=True, metavar="URL", help="kafka://HOST:PORT[?OPTIONS], or a gateway's http://")
    known.add_argument(
        "--wait",
        type=float,
        default=WAIT_SECONDS_DEFAULT,
        metavar="SECONDS",
        help="how long the deployment may take until it serves (default %(default)g)",
    )
    return known


def _word(status: int) -> str:
    return {OK: "ok", USAGE: "refused", INTERRUPTED: "interrupted"}.get(status, "FAILED")


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def _told(text: str, status: int) -> int:
    _say(text)
    return status


if __name__ == "__main__":
    sys.exit(main())
