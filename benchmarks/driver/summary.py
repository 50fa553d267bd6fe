"""Results as text: the line of progress during a run, and the summary at its end."""

from __future__ import annotations

from benchmarks.driver.latency import percentile_us
from benchmarks.driver.lossy import Lost
from benchmarks.driver.pace import OTHERS_SHARE_MAX, SLOWER_MAX, pace_in
from benchmarks.driver.plan import LoadPlan
from benchmarks.driver.probe import Probe
from benchmarks.driver.reports import Progress
from benchmarks.driver.result import Latency, Result, SearchResult
from benchmarks.driver.target import ANSWERED, Outcome
from benchmarks.driver.worker_death import Death
from benchmarks.driver.workload import Audit

LATE_US_MAX = 20_000
"""If a client's sending is later than this at p99, the client was too slow or did not get the processor."""


class ProgressLine:
    """Makes a line of progress for each second of a run."""

    def __init__(self) -> None:
        self._answered = 0

    def line(self, progress: Progress, probe: Probe) -> str:
        """`progress` is over all clients."""
        outcomes = progress.outcomes
        answered = sum(outcomes.values())
        rate, self._answered = answered - (0 if progress.number == 1 else self._answered), answered
        cpu = " ".join(f"{role} {usage.cores:.0%}" for role, usage in probe.last_second.items())
        words = [
            f"{progress.number:4d} s",
            f"sent {progress.sent}",
            f"answered {answered} ({rate}/s)",
            f"p50 {_ms(percentile_us(progress.latency, 50))} p99 {_ms(percentile_us(progress.latency, 99))}",
            f"in flight {progress.in_flight}",
            f"aborted {outcomes.get(Outcome.ABORTED, 0)}",
        ]
        failed = sum(count for outcome, count in outcomes.items() if outcome not in ANSWERED)
        if failed or progress.shed:
            words.append(f"FAILED {failed} SHED {progress.shed}")
        if cpu:
            words.append(f"CPU {cpu}")
        return "  ".join(words)


def summary(result: Result) -> str:
    """The summary of a run."""
    total = result.answered
    lines = [
        f"{result.workload} on {_deployment(result.deployment)}: {_load(result.plan)}, {result.window_s:.4g} s",
        f"throughput   {result.throughput:.1f} transactions/s, {result.committed_rate:.1f} of them committed"
        f" ({result.offered_rate:.1f} requests/s {'were due' if result.plan.concurrency is None else 'were sent'})",
        f"latency      {_latency(total)}",
    ]
    for kind, by_outcome in result.latency.items():
        for outcome, latency in by_outcome.items():
            if outcome in ANSWERED:
                lines.append(f"  {kind + ' ' + outcome:<24} {latency.count:>9}  {_latency(latency)}")
    for kind, by_outcome in result.steps.items():
        for outcome, latency in by_outcome.items():
            lines.append(f"  {'(' + kind + ') ' + outcome:<24} {latency.count:>9}  {_latency(latency)}")
    if result.death is not None:
        lines.append(f"worker       {_death(result.death, result.plan.interval_s)}")
    if result.lost is not None:
        lines.append(f"LOST         {_lost(result.lost)}")
    if result.errors:
        lines.append("errors       " + ", ".join(f"{count} {name}" for name, count in sorted(result.errors.items())))
    if result.cpu_us:
        each = ", ".join(f"{role} {us:.1f}" for role, us in sorted(result.cpu_us.items()))
        lines.append(f"processor    {each} µs per transaction; {sum(result.cpu_us.values()):.1f} in all")
        cores = ", ".join(
            f"{role} {usage.cores:.2f} ({usage.rss_max_bytes / 2**20:.0f} MiB)"
            for role, usage in sorted(result.roles.items())
        )
        lines.append(f"busy         {cores} processors (memory)")
    if result.calls is not None:
        lines.append(f"calls        {result.calls:.2f} functions per transaction, its own included")
    if result.peer:
        each = ", ".join(f"{value:.2f} {what}" for what, value in result.peer.items())
        lines.append(f"peers        {each} between workers per transaction")
    machine, (before, after) = result.machine, result.calibration
    lines.append(
        f"machine      {machine.busy_s / max(machine.seconds, 1e-9):.2f} of {result.environment.processors} processors "
        f"busy, {machine.others_s:.1f} s by others, {machine.stolen_s:.1f} s stolen; "
        f"calibration {before.cpu_ms:.1f} ms before, {after.cpu_ms:.1f} ms after"
    )
    lines += result.notes
    lines += [f"WARNING      {each}" for each in warnings(result)]
    lines += audit_lines(result.audit)
    return "\n".join(lines)


def warnings(result: Result) -> list[str]:
    """Warnings about the figures of a run."""
    found = []
    if result.gave_up:
        found.append(f"the run was given up: {result.gave_up}")
    if result.shed:
        found.append(f"OVERLOADED: {result.shed} requests were due beyond the limit in flight, and never sent")
    if result.missed:
        found.append(f"{result.missed} requests had no reply")
    if result.duplicated:
        found.append(f"{result.duplicated} replies came twice")
    rejected = result.outcomes.get(Outcome.REJECTED, 0) + result.outside.get(Outcome.REJECTED, 0)
    if rejected:
        found.append(f"{rejected} requests were rejected")
    if result.late.p99_us > LATE_US_MAX:
        found.append(
            f"the clients themselves were late, p99 {_ms(result.late.p99_us)}: latencies include that; "
            "use more --clients, or a machine with processors to spare"
        )
    return found + slow_phase(result)


def slow_phase(result: Result) -> list[str]:
    """Warnings about the machine's speed in the run."""
    pace, found = pace_in(result), []
    if pace.slower > SLOWER_MAX:
        found.append(
            f"the machine was in a slow phase: the fixed work took {pace.slower:.2f} times its best time here, "
            f"{result.best_ms:.1f} ms"
        )
    if pace.others > OTHERS_SHARE_MAX:
        found.append(f"other processes and the hypervisor had {pace.others:.0%} of the processors")
    return found


def search_summary(result: SearchResult) -> str:
    """The summary of a search."""
    closed = any(step.result.plan.concurrency is not None for step in result.steps)
    lines = [f"{'at once' if closed else 'rate/s':>9} {'answered/s':>11} {'p50':>10} {'p99':>10}  verdict"]
    for step in result.steps:
        one = step.result
        lines.append(
            f"{step.rate:>9.0f} {one.throughput:>11.1f} {_ms(one.answered.p50_us):>10} {_ms(one.answered.p99_us):>10}  "
            + ("; ".join(step.reasons) or "passed")
            + ("; in a slow phase, repeated" if step.repeated else "")
        )
    what, unit = ("number of requests at once", "") if closed else ("rate", " requests/s")
    slow = sum(pace_in(step.result).slow for step in result.steps)
    if slow:
        lines.append(f"WARNING      {slow} of {len(result.steps)} steps were in a slow phase of the machine")
    lines.append(f"highest {what} with p99 under {result.bound_s:g} s: {result.rate:.0f}{unit} ({result.ended})")
    if result.duplicated:
        lines.append(f"WARNING      {result.duplicated} replies came twice")
    return "\n".join([*lines, *audit_lines(result.audit)])


def audit_lines(audit: Audit | None) -> list[str]:
    """The findings of an audit, a line each."""
    if audit is None:
        return []
    lines = [f"audit        {each}" for each in audit.checked]
    lines += [f"VIOLATION    {each}" for each in audit.violations]
    return [*lines, f"audit        {'FAILED' if audit.violations else 'passed'}"]


def _load(plan: LoadPlan) -> str:
    return f"{plan.rate:g}/s" if plan.concurrency is None else f"{plan.concurrency} requests at once"


def _latency(latency: Latency) -> str:
    return (
        f"p50 {_ms(latency.p50_us)}  p90 {_ms(latency.p90_us)}  p99 {_ms(latency.p99_us)}  "
        f"p99.9 {_ms(latency.p999_us)}  max {_ms(latency.max_us)}"
    )


def _death(death: Death, interval_s: float) -> str:
    pause = "no reply came after that" if death.pause_s is None else f"no reply for {death.pause_s:.1f} s"
    words = [f"killed {death.killed_s:.1f} s after the window's start: {pause} (within {interval_s:g} s)"]
    if death.back_s is not None:
        words.append(f"p99 as before after {death.back_s:.1f} s")
    if death.replaced_s is not None:
        joined = "" if death.joined_s is None else f", with slots from {death.joined_s:.1f} s on"
        words.append(f"another one was started at {death.replaced_s:.1f} s{joined}")
    return "; ".join(words)


def _lost(lost: Lost) -> str:
    text = f"on purpose, what {lost.function} wrote in {lost.invocations} invocations, a share of {lost.share:g}: "
    return text + ("the audit must fail" if lost.invocations else "there is nothing that the audit could find")


def _ms(microseconds: float) -> str:
    return f"{microseconds / 1000:.1f} ms"


def _deployment(deployment: dict[str, object]) -> str:
    return ", ".join(f"{value}" if name == "kind" else f"{name} {value}" for name, value in deployment.items())
