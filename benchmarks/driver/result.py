"""The result of a measurement, as in a JSON file. Every field has its unit.

A file holds one `Result`, or a `SearchResult` with the results of its steps. Times are in seconds and latencies in
microseconds unless the name says otherwise. A *transaction* here is a reply, committed or aborted by its function,
that came within the window.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Final

import msgspec

from benchmarks.driver.accounting import MachineUsage, RoleUsage, memory_by_process
from benchmarks.driver.calibration import Calibration
from benchmarks.driver.counters import Scrape
from benchmarks.driver.environment import Environment
from benchmarks.driver.latency import Cells, cell_end, encode, merge, percentile_us
from benchmarks.driver.lossy import Lost
from benchmarks.driver.measure import Measurement
from benchmarks.driver.plan import LoadPlan
from benchmarks.driver.probe import Mark
from benchmarks.driver.target import ANSWERED, Outcome
from benchmarks.driver.timeline import Point, timeline_of
from benchmarks.driver.worker_death import Death, death_of
from benchmarks.driver.workload import Audit
from styx.errors import ConfigurationError

FORMAT: Final = 1
PEER_COUNTERS: Final = ("messages", "frames", "bytes")
CALLS_COUNTER: Final = "styx_calls_total"


class Latency(msgspec.Struct, frozen=True, kw_only=True):
    """The latency of `count` requests, from the time at which they were due to their reply, exact to three digits.
    `hdr` is the histogram in HdrHistogram's encoding. Without requests, `hdr` is empty and the figures are 0.
    """

    count: int
    p50_us: int
    p90_us: int
    p99_us: int
    p999_us: int
    max_us: int
    hdr: str = ""


class Result(msgspec.Struct, kw_only=True, tag="run"):
    """One run.

    `settings` are the workload's options, `deployment` describes the deployment. The window lasted `window_s`, from
    `window_from` to `window_to` (UTC, to the millisecond): less than planned if the run was given up, 0 if that was
    before it. `offered_rate`, `throughput` and `committed_rate` are per second of the window: requests due,
    transactions, and those that committed. `best_ms` is the best time of the fixed work that is known on this machine.

    Of the requests due in the window: `sent`, `shed` (due beyond the limit in flight, and never sent), `outcomes`,
    `latency` by kind and outcome, and `answered` over all kinds that were answered. `steps` are the latencies of the
    requests that prepare others (items that are put into a cart), which are no transactions. `late`: how much later
    than due the clients themselves were. `outside`: outcomes of the requests of the warm-up. `errors`, warm-up
    included, by outcome and why: `aborted:InsufficientFunds`, `rejected:overloaded`, `missed:timeout`.

    `duplicated` replies, warm-up included; None if a second reply is impossible on that way. `overloaded`: more was due
    than clients could send or the target answered; then the latencies describe a growing backlog. `gave_up`: why the
    run ended early; empty if it did not. `death`: what clients saw of a worker that was killed; None if none was.
    `lost`: writes that were lost on purpose. `notes` are the workload's own lines about the run.

    `cpu_us` is processor time per transaction by role, of the usage in `roles`. `memory` are the resident bytes of each
    process at each second of the window, by role and PID. `counters` is what the processes
    counted of themselves in the window, by role (docs/metrics.md). `peer` is what workers sent to each other for one
    transaction: messages, frames, bytes; empty where workers do not tell. `calls` are the functions run for one
    transaction, the request's own included (again where carried or, after a death, replayed); None where nobody tells.
    """

    format: int = FORMAT
    workload: str
    settings: dict[str, Any]
    deployment: dict[str, Any]
    plan: LoadPlan
    environment: Environment
    calibration: tuple[Calibration, Calibration]
    best_ms: float = 0.0
    window_s: float = 0.0
    window_from: str = ""
    window_to: str = ""
    offered_rate: float
    throughput: float
    committed_rate: float
    sent: int
    shed: int
    outcomes: dict[Outcome, int]
    outside: dict[Outcome, int]
    errors: dict[str, int]
    answered: Latency
    latency: dict[str, dict[Outcome, Latency]]
    steps: dict[str, dict[Outcome, Latency]] = {}
    late: Latency
    timeline: list[Point]
    marks: list[Mark]
    death: Death | None = None
    lost: Lost | None = None
    duplicated: int | None = None
    overloaded: bool
    gave_up: str
    cpu_us: dict[str, float]
    roles: dict[str, RoleUsage]
    machine: MachineUsage
    memory: dict[str, list[int]] = {}
    counters: dict[str, Scrape]
    peer: dict[str, float]
    calls: float | None = None
    audit: Audit | None = None
    notes: list[str] = []

    @property
    def missed(self) -> int:
        """Requests without a reply, warm-up included."""
        return sum(each.get(Outcome.MISSED, 0) + each.get(Outcome.UNKNOWN, 0) for each in (self.outcomes, self.outside))


class Step(msgspec.Struct, kw_only=True):
    """One step of a search or a sweep. It passed if `reasons` is empty. A step that failed in a slow phase of the
    machine does not count and is `repeated`.
    """

    rate: float
    reasons: list[str]
    result: Result
    repeated: bool = False


class SearchResult(msgspec.Struct, kw_only=True, tag="search"):
    """The result of a search or a sweep. `rate` is the highest rate that passed, in requests a second, or 0. `ended` is
    the reason why no further step followed. `bound_s` is the bound on p99. `audit` and `duplicated` cover all steps.
    """

    format: int = FORMAT
    workload: str
    settings: dict[str, Any]
    deployment: dict[str, Any]
    bound_s: float
    rate: float
    ended: str
    steps: list[Step]
    duplicated: int | None = None
    audit: Audit | None = None


def result_of(measured: Measurement, workload: str, settings: dict[str, Any], deployment: dict[str, Any]) -> Result:
    """Everything but `duplicated` and `audit`, which come later."""
    plan, report, probe = measured.plan, measured.report, measured.probe
    window_s = report.window_s
    throughput = _per_second(sum(report.replied.get(outcome, 0) for outcome in ANSWERED), window_s)
    answered: Cells = {}
    for kind, by_outcome in report.latency.items():
        # A step is in `latency` as well if it has not committed; its latency is not a transaction's.
        for outcome in ANSWERED if kind not in report.steps else ():
            merge(answered, by_outcome.get(outcome, {}))
    roles, counters, timeline = probe.roles, probe.counters, timeline_of(measured)
    return Result(
        workload=workload,
        settings=settings,
        deployment=deployment,
        plan=plan,
        environment=measured.environment,
        calibration=measured.calibration,
        window_s=window_s,
        window_from=_clock(measured.window_from),
        window_to=_clock(measured.window_from + timedelta(seconds=window_s)),
        offered_rate=_per_second(report.due, window_s),
        throughput=throughput,
        committed_rate=_per_second(report.replied.get(Outcome.COMMITTED, 0), window_s),
        sent=report.sent,
        shed=report.shed,
        outcomes=report.outcomes,
        outside=report.outside,
        errors=report.errors,
        answered=latency_of(answered),
        latency=_by_kind(report.latency),
        steps=_by_kind(report.steps),
        late=latency_of(report.late),
        timeline=timeline,
        marks=measured.marks,
        death=death_of(timeline, measured.marks, plan.interval_s),
        overloaded=bool(report.shed) or bool(report.gave_up),
        gave_up=report.gave_up,
        # Rates instead of totals: the samples are not taken exactly at the window's ends.
        cpu_us={role: usage.cores / throughput * 1e6 for role, usage in roles.items()} if throughput else {},
        roles=roles,
        machine=probe.machine,
        memory=memory_by_process(probe.samples),
        counters=counters,
        peer=_peer(counters.get("worker", {})),
        calls=_calls(counters.values()),
    )


def _per_second(count: int, seconds: float) -> float:
    return count / seconds if seconds else 0.0


def _clock(at: datetime) -> str:
    return at.isoformat(timespec="milliseconds")


def _by_kind(cells: dict[str, dict[Outcome, Cells]]) -> dict[str, dict[Outcome, Latency]]:
    return {
        kind: {outcome: latency_of(each) for outcome, each in by_outcome.items()}
        for kind, by_outcome in sorted(cells.items())
    }


def latency_of(cells: Cells) -> Latency:
    """The latency with its percentiles."""
    return Latency(
        count=sum(cells.values()),
        p50_us=percentile_us(cells, 50),
        p90_us=percentile_us(cells, 90),
        p99_us=percentile_us(cells, 99),
        p999_us=percentile_us(cells, 99.9),
        max_us=cell_end(max(cells)) if cells else 0,
        hdr=encode(cells) if cells else "",
    )


def write(path: Path, result: Result | SearchResult) -> None:
    """As indented JSON; raises `OSError`."""
    path.write_bytes(msgspec.json.format(msgspec.json.encode(result), indent=1) + b"\n")


def read(path: Path) -> Result | SearchResult:
    """Reads a file that `write` has written. Raises `ConfigurationError`."""
    try:
        return _results.decode(path.read_bytes())
    except OSError as error:
        raise ConfigurationError(f"{path} cannot be read: {error.strerror}") from None
    except msgspec.DecodeError as error:
        raise ConfigurationError(f"{path} is no result of `run`, `search` or `sweep`: {error}") from None


_results: Final[msgspec.json.Decoder[Result | SearchResult]] = msgspec.json.Decoder(Result | SearchResult)


def _peer(workers: Scrape) -> dict[str, float]:
    """Messages, frames and bytes per transaction, by the workers' counters."""
    transactions = _transactions(workers)
    sent = {each: workers.get(f"styx_peer_{each}_total{{direction=sent}}") for each in PEER_COUNTERS}
    return {each: value / transactions for each, value in sent.items() if value is not None} if transactions else {}


def _calls(counters: Iterable[Scrape]) -> float | None:
    """Functions per transaction, by the counters of the workers or of an embedded engine."""
    telling = [scrape for scrape in counters if CALLS_COUNTER in scrape]
    transactions = sum(map(_transactions, telling))
    return sum(scrape[CALLS_COUNTER] for scrape in telling) / transactions if transactions else None


def _transactions(counted: Scrape) -> float:
    return sum(value for name, value in counted.items() if name.startswith("styx_transactions_total{"))
