"""`python -m benchmarks.read_anomalies`: how often a client that reads a price and a discount one after the other sees
one of before a change and one of behind it, and what it costs to see both at one moment.

Four of five requests read a cart, the others change a product's price and discount together, as in section 4 of the
μTCC paper. Each rate runs with one hot product and with 22, and in three ways: two latest reads, two reads at one
epoch, and one read of the cart. A second part varies how many versions the engine keeps. By default each step has an
engine of its own behind HTTP, as a process of this machine; with --url all steps run on a gateway that serves
benchmarks.read_anomalies.app:app already, such as a cluster's.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

from benchmarks.driver.one_at_a_time import load_test
from benchmarks.experiments.numbers import numbers_of, seconds_of
from benchmarks.read_anomalies.app import change, price
from benchmarks.read_anomalies.report import BY_RATE, BY_VERSIONS, Step, lines, write
from benchmarks.read_anomalies.step import WAYS, Wanted, run_step
from proof.cluster.child import ChildFailed, ChildProcess
from styx.client.http import HttpClient
from styx.errors import ConfigurationError
from styx.model.limits import Limits
from styx.testing.patience import PATIENCE_SECONDS

OK: Final = 0
FAILED: Final = 1
USAGE: Final = 2
RATES: Final = "40,80,160,320,640"
ITEMS: Final = (1, 22)
"""High and low contention, as in the paper."""
VERSIONS: Final = "1,2,4,8,16,25,40"
VERSIONS_MAX: Final = 1_000
RATE_MAX: Final = 5_000
PAUSE_MS_MAX: Final = 1_000
POLL_SECONDS: Final = 0.02
ROOT: Final = str(Path(__file__).resolve().parents[2])


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command; returns the exit status."""
    options = _parser().parse_args(arguments)
    try:
        rates = numbers_of("--rates", options.rates, 1, RATE_MAX)
        kept = [int(each) for each in numbers_of("--versions", options.versions, 1, VERSIONS_MAX)]
        seconds = seconds_of("--seconds", options.seconds, 0.5)
        for name, pause_ms in (("--pause-ms", options.pause_ms), ("--long-pause-ms", options.long_pause_ms)):
            if not 0 <= pause_ms <= PAUSE_MS_MAX:
                raise ConfigurationError(f"{name} is a number from 0 to {PAUSE_MS_MAX}, got {pause_ms:g}")
        with load_test():
            steps = asyncio.run(_run(options, rates, kept, seconds))
        write(options.out, steps)
    except ConfigurationError as error:
        print(error, file=sys.stderr)
        return USAGE
    except (ChildFailed, OSError) as error:
        print(error, file=sys.stderr)
        return FAILED
    return FAILED if any(step.wrong for step in steps) else OK


async def _run(options: argparse.Namespace, rates: list[float], kept: list[int], seconds: float) -> list[Step]:
    pause_s, long_s, usual = options.pause_ms / 1_000, options.long_pause_ms / 1_000, Limits().versions_max
    wanted = [
        (BY_RATE, usual, Wanted(way, rate, items, seconds, pause_s, options.seed))
        for items in ITEMS
        for rate in rates
        for way in WAYS
    ]
    if options.url is None:
        hot = Wanted("pinned", max(rates), 1, seconds, long_s, options.seed)
        wanted += [(BY_VERSIONS, number, hot) for number in kept]
    steps: list[Step] = []
    for part, number, each in wanted:
        async with _client(options.url, number) as client:
            for item in range(each.items):
                await client.call(price, item, change)
            steps.append(Step(part, number, each, await run_step(client, each)))
        print("\n".join(lines(steps[-1], first=len(steps) == 1)), flush=True)
    return steps


@asynccontextmanager
async def _client(url: str | None, versions: int) -> AsyncIterator[HttpClient]:
    """A client of `url`, or of a new engine that keeps so many versions."""
    if url is not None:
        async with HttpClient(url) as client:
            yield client
        return
    with tempfile.TemporaryDirectory(prefix="styx-anomalies-") as folder:
        address = Path(folder) / "address"
        arguments = ["-m", "benchmarks.read_anomalies.server", str(versions), str(Path(folder) / "data"), str(address)]
        child = await ChildProcess.start("server", arguments, {"PYTHONPATH": ROOT}, Path(folder))
        try:
            async with asyncio.timeout(PATIENCE_SECONDS):
                while not address.exists():
                    child.check()
                    await asyncio.sleep(POLL_SECONDS)
            async with HttpClient(address.read_text()) as client:
                yield client
            child.check()
        finally:
            await child.kill()


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.read_anomalies",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--rates", default=RATES, metavar="N,…", help=f"requests a second (default {RATES})")
    parser.add_argument(
        "--seconds", type=float, default=5.0, metavar="N", help="of each step, a quarter of them warm-up"
    )
    parser.add_argument(
        "--pause-ms",
        type=float,
        default=5.0,
        metavar="N",
        help="how long a client, or the service between, takes from the first answer to the second read (default 5)",
    )
    parser.add_argument(
        "--long-pause-ms",
        type=float,
        default=100.0,
        metavar="N",
        help="the same in the second part, where epochs have to be kept for so long (default 100)",
    )
    parser.add_argument(
        "--versions",
        default=VERSIONS,
        metavar="N,…",
        help=f"versions that engines of the second part keep (default {VERSIONS})",
    )
    parser.add_argument("--url", metavar="URL", help="a gateway that serves the app already; then no second part")
    parser.add_argument("--seed", type=int, default=1, metavar="N", help="of the products, and of who reads")
    parser.add_argument(
        "--out", type=Path, default=Path("build/read_anomalies"), metavar="DIR", help="for the table, JSON and charts"
    )
    return parser


if __name__ == "__main__":
    sys.exit(main())
