"""`python -m benchmarks.micro [ROW…]`: CPU per transaction of the engine, beside the bare loop for rows of transfers;
with `--reads`, of reads of hot keys that are declared as read-only, beside the same reads undeclared.

Both loops run the same requests in turn in one process, several times; figures are process CPU time, the median of the
runs with the range. The machine's speed cancels out in the ratio. The garbage collector is tuned as in a worker
process, for both.
"""

from __future__ import annotations

import argparse
import platform
from collections.abc import Callable
from pathlib import Path

from benchmarks.micro import reads
from benchmarks.micro.bank import account, app
from benchmarks.micro.comparison import Comparison
from benchmarks.micro.engine_loop import EngineLoop
from benchmarks.micro.rows import ROWS, Row, add_rows
from benchmarks.micro.timing import figure, time_row
from benchmarks.reference.bare_loop import bare_loop
from benchmarks.reference.cpu_time import cpu_seconds
from benchmarks.reference.transfers import START_BALANCE, encoded, transfers
from styx.messages import decode_reply
from styx.native.form import FORM, describe, name
from styx.values.codec import encode_strict


def time_both(
    keys: int, requests: list[bytes], routed: list[tuple[int, bytes]]
) -> tuple[float, float, EngineLoop, list[bytes]]:
    """CPU seconds of the bare loop and of the engine on the same requests and state; the engine; its replies."""
    state = {key: encode_strict({"balance": START_BALANCE}) for key in range(keys)}
    engine = EngineLoop(app)
    for key, value in state.items():
        engine.worker.slots[account.partition_of(key, 4) % 4].state.table("account").commit(-1, {key: value})
    expected: list[bytes] = []
    given: list[bytes] = []
    bare_s = cpu_seconds(lambda: expected.extend(bare_loop(requests, state)))
    engine_s = cpu_seconds(lambda: given.extend(engine.run(routed)))
    _check(given, expected, engine, state)
    return bare_s, engine_s, engine, given


def measure(title: str, keys: int, count: int, runs: int) -> Comparison:
    """Measures and prints one comparison."""
    drawn = transfers(count, keys, seed=7)
    requests = encoded(drawn)
    routed = [(account.partition_of(d, 4) % 4, data) for (d, _, _), data in zip(drawn, requests, strict=True)]
    timings = [time_both(keys, requests, routed) for _ in range(runs)]
    bare_us = [bare_s / count * 1e6 for bare_s, _, _, _ in timings]
    engine_us = [engine_s / count * 1e6 for _, engine_s, _, _ in timings]
    comparison = Comparison(title, bare_us, engine_us)
    _, _, engine, given = timings[-1]
    print(
        f"{title}: bare loop {figure(bare_us)} µs, engine {figure(engine_us)} µs a transaction, "
        f"ratio {figure(comparison.ratios)} ({_phases(engine, given)})"
    )
    return comparison


def measure_row(row: Row, count: int, runs: int, at_once: int) -> None:
    """Measures and prints a row that the bare loop cannot run."""
    timings = [time_row(row, count, at_once) for _ in range(runs)]
    _, engine, given = timings[-1]
    print(
        f"{row.title}: engine {figure([engine_s / count * 1e6 for engine_s, _, _ in timings])} µs a transaction "
        f"({_phases(engine, given)})"
    )


def _phases(engine: EngineLoop, given: list[bytes]) -> str:
    phases = [decode_reply(data).phase for data in given]
    through = ", ".join(f"{phases.count(each) / len(given):.0%} in phase {each}" for each in sorted(set(phases)))
    return f"{engine.worker.epoch + 1} epochs, {through}"


def _check(given: list[bytes], expected: list[bytes], engine: EngineLoop, state: dict[int, bytes]) -> None:
    """Checks the engine's work: as many replies as requests, all committed, and as many accounts as before."""
    assert len(given) == len(expected)
    assert all(decode_reply(data).error is None for data in given)
    assert sum(len(slot.state.table("account")) for slot in engine.worker.slots.values()) == len(state)


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.micro", description=__doc__)
    add_rows(parser)
    parser.add_argument("--transactions", type=int, default=50_000, help="per run (default 50000)")
    parser.add_argument("--runs", type=int, default=5, help="runs of each (default 5)")
    parser.add_argument(
        "--reads", action="store_true", help="also reads of hot keys between transfers, declared and undeclared"
    )
    parser.add_argument(
        "--chart",
        type=Path,
        metavar="FILE",
        help="also write the figures as an SVG chart, of rows of transfers alone",
    )
    options = parser.parse_args()
    write_chart = _chart_writer(parser) if options.chart is not None else None
    interpreter = f"{platform.python_implementation()} {platform.python_version()}"
    print(f"{interpreter}, {platform.machine()}, engine {describe(FORM)}")
    comparisons = []
    for chosen in options.rows:
        row = ROWS[chosen]
        if row.keys:
            comparisons.append(measure(row.title, row.keys, options.transactions, options.runs))
        else:
            measure_row(row, options.transactions, options.runs, options.at_once)
    if options.reads:
        for keys in reads.KEYS:
            for share in reads.SHARES:
                reads.measure(keys, share, options.transactions, options.runs)
    if write_chart is not None:
        write_chart(options.chart, comparisons, f"{interpreter}, {name(FORM)}")
        print(f"chart: {options.chart}")


def _chart_writer(parser: argparse.ArgumentParser) -> Callable[[Path, list[Comparison], str], None]:
    """Checks the chart's library before the long measurement."""
    try:
        from benchmarks.micro.chart import write_chart
    except ModuleNotFoundError as error:
        parser.error(f"--chart needs {error.name}, from the extra 'bench'; scripts/bench installs it")
    return write_chart


if __name__ == "__main__":
    main()
