"""The driver's options on the command line, and the data that they are read into."""

from __future__ import annotations

import argparse
from pathlib import Path

from benchmarks.driver.lossy import SHARE_DEFAULT, Loss, parse
from benchmarks.driver.plan import IN_FLIGHT_MAX_DEFAULT, TIMEOUT_SECONDS_DEFAULT, LoadPlan
from benchmarks.driver.search import PRECISION_DEFAULT, STEPS_MAX, TRIES_DEFAULT
from benchmarks.driver.sweep import (
    FACTOR_DEFAULT,
    FACTOR_MAX,
    FACTOR_MIN,
    FINER_DEFAULT,
    FINER_MAX,
    FIRST_RATE_DEFAULT,
    THROUGHPUT_SHARE_MIN,
    Levels,
    Sweep,
)
from benchmarks.driver.worker_death import (
    INTERVAL_SECONDS,
    PATIENCE_SECONDS,
    REPLACE_AFTER_SECONDS_DEFAULT,
    WorkerDeath,
)
from styx.embedded_engine.options import N_SLOTS_DEFAULT
from styx.errors import ConfigurationError
from styx.model.limits import TIMEOUT_SECONDS_MAX
from styx.process.data_directory import problem_of

CLUSTER_SLOTS_DEFAULT = 16
OWN = "own"
"""As --replica."""
CHART_KINDS = ("latency", "timeline", "scaling", "cpu")
_PLAN = LoadPlan(rate=1.0)


def add_deployment_options(parser: argparse.ArgumentParser) -> None:
    """Adds the options that choose the deployment."""
    add = parser.add_argument_group("deployment").add_argument
    add(
        "--on",
        default="embedded",
        metavar="WHAT",
        help="embedded: an engine in this process, no service needed; cluster: Kafka, MinIO, a coordinator and workers "
        "of its own, gone afterwards; kafka://HOST:PORT or http://HOST:PORT: a deployment that runs already, such as "
        "that of `styx up` (default embedded)",
    )
    add("--workers", type=int, default=2, metavar="N", help="worker processes of --on cluster (default 2)")
    add(
        "--slots",
        type=int,
        metavar="N",
        help="parts that the entities are spread over; of a deployment that runs already, the number that it has "
        f"(default {N_SLOTS_DEFAULT} embedded, else {CLUSTER_SLOTS_DEFAULT})",
    )
    add(
        "--snapshot-interval",
        type=float,
        default=10.0,
        metavar="SECONDS",
        help="between snapshots, embedded and of --on cluster (default 10)",
    )
    add("--gateway", action="store_true", help="clients of --on cluster go through an HTTP gateway, not to Kafka")
    add(
        "--replica",
        metavar="own|URL",
        help="a replica for what a workload asks in SQL: one of its own, beside --on cluster or the files of an "
        "embedded engine, or one that runs (default: none)",
    )
    add(
        "--data-dir",
        type=Path,
        metavar="DIR",
        help="where an embedded engine keeps its data (default: a temporary directory)",
    )
    add("--in-memory", action="store_true", help="an embedded engine writes no files, and loses all with its process")
    add(
        "--epoch-transactions",
        type=int,
        metavar="N",
        help="transactions of one epoch of an embedded engine at most (default: the engine's own limit)",
    )
    add("--app-name", metavar="NAME", help="what the app is called at kafka:// (default: its own name)")
    add(
        "--pid",
        action="append",
        default=[],
        metavar="ROLE=PID",
        help="also account this process of this machine and its children, as worker=1234; repeatable",
    )
    add(
        "--metrics",
        action="append",
        default=[],
        metavar="ROLE=URL",
        help="also read this process's counters, as worker=http://127.0.0.1:8082; repeatable",
    )


def add_load_options(parser: argparse.ArgumentParser) -> None:
    """Adds the options for sending requests, except the rate."""
    add = parser.add_argument_group("load").add_argument
    add(
        "--duration",
        type=float,
        default=_PLAN.duration_s,
        metavar="SECONDS",
        help="the window that is counted (default %(default)g)",
    )
    add(
        "--warm-up",
        type=float,
        default=_PLAN.warm_up_s,
        metavar="SECONDS",
        help="load before the window, not counted (default %(default)g)",
    )
    add(
        "--drain",
        type=float,
        default=_PLAN.drain_s,
        metavar="SECONDS",
        help=f"how long replies are waited for after the window (default {_PLAN.drain_s:g})",
    )
    add("--clients", type=int, default=1, metavar="N", help="client processes, which share the rate (default 1)")
    add(
        "--arrivals",
        choices=("even", "poisson"),
        default="even",
        help="evenly spaced, or at random with the same mean (default even)",
    )
    add(
        "--tick",
        type=float,
        default=_PLAN.tick_s * 1000,
        metavar="MS",
        help="what is due within so many milliseconds is due together (default %(default)g)",
    )
    add(
        "--interval",
        type=float,
        default=_PLAN.interval_s,
        metavar="SECONDS",
        help=f"resolution of the time line; 0.1 shows single snapshots (default {_PLAN.interval_s:g})",
    )
    add(
        "--in-flight",
        type=int,
        default=IN_FLIGHT_MAX_DEFAULT,
        metavar="N",
        help="requests of one client under way at once; what is due beyond is shed, and makes the run overloaded "
        "(default %(default)s)",
    )
    add(
        "--timeout",
        type=float,
        default=TIMEOUT_SECONDS_DEFAULT,
        metavar="SECONDS",
        help=f"a reply that takes longer counts as missed (default {TIMEOUT_SECONDS_DEFAULT:g})",
    )
    add("--seed", type=int, default=1, metavar="N", help="the same seed gives the same requests (default 1)")
    add("--loaded", action="store_true", help="the data is there already, as `load` left it, and nothing changed since")
    add("--no-audit", action="store_true", help="do not compare the state with the replies at the end")
    add("--out", type=Path, metavar="FILE", help="write the result there, as JSON")
    add("--quiet", action="store_true", help="no line of progress each second")


def add_run_options(parser: argparse.ArgumentParser) -> None:
    """Adds the options of `run`, after `add_load_options`. Some defaults depend on `--kill-worker`."""
    parser.set_defaults(drain=None, interval=None, timeout=None)
    parser.add_argument(
        "--rate",
        type=float,
        default=1000.0,
        metavar="N",
        help="requests a second, over all clients (default %(default)g)",
    )
    parser.add_argument(
        "--concurrency",
        type=int,
        metavar="N",
        help="a closed loop instead of a rate: so many requests are under way at once, over all clients, and the next "
        "one is sent when one is answered (default: the open loop of --rate)",
    )
    parser.add_argument(
        "--witness", type=Path, metavar="FILE", help="write what the clients have seen there, for a later `audit`"
    )
    parser.add_argument(
        "--kill-worker",
        type=float,
        metavar="SECONDS",
        help="with --on cluster: so long after the window's start a worker is killed (SIGKILL); every request must be "
        f"answered all the same, and once. --timeout and --drain are {PATIENCE_SECONDS:g} s then, and --interval "
        f"{INTERVAL_SECONDS:g} s",
    )
    parser.add_argument(
        "--replace-after",
        type=float,
        metavar="SECONDS",
        help="so long after that a new worker is started, which joins the others "
        f"(default {REPLACE_AFTER_SECONDS_DEFAULT:g})",
    )

    parser.add_argument(
        "--lose",
        metavar="OPERATOR.FUNCTION[/TABLE][=SHARE]",
        help="embedded: what this function writes, or writes to this table, is lost in so many of its invocations "
        f"(default {SHARE_DEFAULT:g}), to show that the audit notices",
    )


def add_search_options(parser: argparse.ArgumentParser) -> None:
    """Adds the options of `search`."""
    add = parser.add_argument
    add("--bound", type=float, default=1.0, metavar="SECONDS", help="what p99 must stay under (default 1)")
    add(
        "--first-rate",
        type=float,
        default=1000.0,
        metavar="N",
        help="requests a second of the first step (default %(default)g)",
    )
    add(
        "--precision",
        type=float,
        default=PRECISION_DEFAULT,
        metavar="SHARE",
        help=f"how near the highest rate that passed and the lowest that failed come, within {STEPS_MAX} steps "
        "(default %(default)g)",
    )
    add(
        "--tries",
        type=int,
        default=TRIES_DEFAULT,
        metavar="N",
        help="how often a rate must fail to be too high (default %(default)s)",
    )


def add_sweep_options(parser: argparse.ArgumentParser) -> None:
    """Adds the options of `sweep`."""
    add = parser.add_argument
    add(
        "--first-rate",
        type=float,
        default=FIRST_RATE_DEFAULT,
        metavar="N",
        help="requests a second of the first step (default %(default)g)",
    )
    add(
        "--factor",
        type=float,
        default=FACTOR_DEFAULT,
        metavar="X",
        help="from one step's rate to the next one's (default %(default)g)",
    )
    add(
        "--bound",
        type=float,
        default=1.0,
        metavar="SECONDS",
        help=f"saturated is what has a higher p99, sheds requests, or answers less than a share of "
        f"{THROUGHPUT_SHARE_MIN:g} in time (default 1)",
    )
    add(
        "--concurrency",
        metavar="N,N",
        help="a closed loop at each of these numbers of requests at once, instead of rates",
    )
    add(
        "--finer",
        type=int,
        default=FINER_DEFAULT,
        metavar="N",
        help="steps between the highest rate that held and the one that did not (default %(default)s)",
    )


def add_load_command_options(parser: argparse.ArgumentParser) -> None:
    """Adds the options of `load` and `audit`."""
    parser.set_defaults(in_flight=IN_FLIGHT_MAX_DEFAULT)


def add_audit_options(parser: argparse.ArgumentParser) -> None:
    """Adds the options of `audit` alone."""
    parser.add_argument(
        "--witness",
        type=Path,
        action="append",
        default=[],
        metavar="FILE",
        help="what `run --witness` wrote, of all runs since the data was loaded; repeatable (default: there was none)",
    )


def add_plot_options(parser: argparse.ArgumentParser) -> None:
    """Adds the options of `plot`."""
    add = parser.add_argument
    add(
        "results", type=Path, nargs="+", metavar="RESULT", help="files that `--out` of `run`, `search` or `sweep` wrote"
    )
    add(
        "--kind",
        choices=CHART_KINDS,
        default="latency",
        help="latency: latency against throughput; timeline: latency over the time of one run; scaling: rates of "
        "searches against workers; cpu: processor time per transaction by role (default latency)",
    )
    add("--out", type=Path, required=True, metavar="FILE", help="the chart: FILE.svg or FILE.png")
    add("--title", default="", help="above the chart")


def plan_of(options: argparse.Namespace, rate: float, give_up_s: float | None = None) -> LoadPlan:
    """The plan of a run; raises `ConfigurationError`. `rate` is a level in a sweep with `--concurrency`."""
    concurrency = getattr(options, "concurrency", None)
    if isinstance(concurrency, str):
        concurrency = int(rate)
    plan = LoadPlan(
        rate=rate,
        duration_s=options.duration,
        warm_up_s=options.warm_up,
        drain_s=options.drain,
        clients=1 if options.on == "embedded" else options.clients,
        arrivals=options.arrivals,
        tick_s=options.tick / 1000,
        interval_s=options.interval,
        in_flight_max=options.in_flight,
        seed=options.seed,
        give_up_s=give_up_s,
        concurrency=concurrency,
    )
    plan.check()
    return plan


def check(options: argparse.Namespace) -> None:
    """Sets the defaults that depend on other options. Raises `ConfigurationError` for options that contradict each
    other.
    """
    if options.slots is None:
        options.slots = N_SLOTS_DEFAULT if options.on == "embedded" else CLUSTER_SLOTS_DEFAULT
    if not 1 <= options.workers <= options.slots:
        raise ConfigurationError(
            f"--workers is a number from 1 to that of the slots ({options.slots}), got {options.workers}"
        )
    if not 0 < options.snapshot_interval < float("inf"):
        raise ConfigurationError(
            f"--snapshot-interval is a number of seconds above 0, got {options.snapshot_interval:g}"
        )
    if options.on == "embedded" and getattr(options, "clients", 1) != 1:
        raise ConfigurationError("an embedded engine has one client, in its own process: --clients needs --on cluster")
    if options.gateway and options.on != "cluster":
        raise ConfigurationError("--gateway needs --on cluster; a gateway that runs already is --on http://HOST:PORT")
    if options.data_dir is not None and options.on != "embedded":
        raise ConfigurationError("--data-dir is an embedded engine's: it does not go with --on")
    _check_embedded(options)
    if hasattr(options, "kill_worker"):
        _fill_in_patience(options)
    _check_values(options)
    problem = None if options.data_dir is None else problem_of(options.data_dir)
    if problem is not None:
        raise ConfigurationError(f"--data-dir {options.data_dir} cannot be used: {problem}; choose another directory")


def _check_embedded(options: argparse.Namespace) -> None:
    """Checks the options of the engine itself, which only an embedded one takes from here."""
    for name, given in (("in-memory", options.in_memory), ("epoch-transactions", options.epoch_transactions)):
        if given and options.on != "embedded":
            raise ConfigurationError(f"--{name} is an embedded engine's: it does not go with --on {options.on}")
    if options.replica == OWN and (options.in_memory or options.on not in ("embedded", "cluster")):
        raise ConfigurationError(
            "--replica own needs --on cluster, or an embedded engine with files; else give its URL"
        )
    if options.in_memory and options.data_dir is not None:
        raise ConfigurationError("--in-memory writes nothing: it does not go with --data-dir")
    if options.epoch_transactions is not None and options.epoch_transactions < 1:
        raise ConfigurationError(f"--epoch-transactions is a number from 1 on, got {options.epoch_transactions}")


def _check_values(options: argparse.Namespace) -> None:
    """Checks the options that neither a plan nor a sweep checks. Not every subcommand has all of them."""
    for name, most in (("timeout", TIMEOUT_SECONDS_MAX), ("bound", TIMEOUT_SECONDS_MAX), ("precision", 1.0)):
        value = getattr(options, name, most)
        # This form of the comparison refuses a NaN, too.
        if not 0 < value <= most:
            raise ConfigurationError(f"--{name} is a number above 0 and up to {most:g}, got {value:g}")
    if getattr(options, "tries", 1) < 1:
        raise ConfigurationError(f"--tries is 1 or more, got {options.tries}")
    for name in ("out", "witness"):
        file = getattr(options, name, None)
        if isinstance(file, Path) and not file.parent.is_dir():
            raise ConfigurationError(f"--{name} {file}: there is no directory {file.parent}")


def _fill_in_patience(options: argparse.Namespace) -> None:
    """Sets defaults for a worker's death: requests under way are answered after the recovery, and the pause needs a
    fine time line.
    """
    killed = options.kill_worker is not None
    for name, value, value_if_killed in (
        ("drain", _PLAN.drain_s, PATIENCE_SECONDS),
        ("interval", _PLAN.interval_s, INTERVAL_SECONDS),
        ("timeout", TIMEOUT_SECONDS_DEFAULT, PATIENCE_SECONDS),
    ):
        if getattr(options, name) is None:
            setattr(options, name, value_if_killed if killed else value)


def worker_death_of(options: argparse.Namespace) -> WorkerDeath | None:
    """The plan of `--kill-worker`; None without the option. Raises `ConfigurationError`."""
    if options.kill_worker is None:
        if options.replace_after is not None:
            raise ConfigurationError("--replace-after needs --kill-worker: only a worker that was killed is replaced")
        return None
    if options.on != "cluster":
        raise ConfigurationError(
            f"--kill-worker needs --on cluster, whose workers are this command's own to kill; got --on {options.on}"
        )
    after_s = REPLACE_AFTER_SECONDS_DEFAULT if options.replace_after is None else options.replace_after
    replaced_s = options.kill_worker + after_s
    if not (options.kill_worker >= 0 and after_s >= 0 and replaced_s < options.duration):
        raise ConfigurationError(
            f"--kill-worker and --replace-after are numbers of seconds from 0 on, and both happen within the window "
            f"(--duration {options.duration:g}); got {options.kill_worker:g} and {after_s:g}"
        )
    return WorkerDeath(options.workers - 1, options.kill_worker, replaced_s)


def loss_of(options: argparse.Namespace) -> Loss | None:
    """The loss of `--lose`; None without the option. Raises `ConfigurationError`."""
    if options.lose is None:
        return None
    if options.on != "embedded":
        raise ConfigurationError(
            f"--lose needs an embedded engine, whose app is this command's own to break; got --on {options.on}"
        )
    if options.no_audit:
        raise ConfigurationError("--lose shows that the audit notices: it does not go with --no-audit")
    return parse(options.lose)


def sweep_of(options: argparse.Namespace) -> Sweep | Levels:
    """The sweep of the options; raises `ConfigurationError`."""
    if options.concurrency is not None:
        return Levels(_levels(options.concurrency))
    if not FACTOR_MIN <= options.factor <= FACTOR_MAX:
        raise ConfigurationError(f"--factor is a number from {FACTOR_MIN:g} to {FACTOR_MAX:g}, got {options.factor:g}")
    if not 0 <= options.finer <= FINER_MAX:
        raise ConfigurationError(f"--finer is a number from 0 to {FINER_MAX}, got {options.finer}")
    return Sweep(options.first_rate, options.factor, options.finer)


def _levels(text: str) -> list[int]:
    levels = [int(word) if word.isdecimal() else 0 for word in text.split(",")]
    if not all(levels) or len(set(levels)) < len(levels):
        raise ConfigurationError(f"--concurrency is different numbers from 1 on, such as 8,16,48; got {text}")
    return levels


def pairs(option: str, words: list[str]) -> dict[str, list[str]]:
    """ROLE=VALUE words by role; raises `ConfigurationError`."""
    found: dict[str, list[str]] = {}
    for word in words:
        role, separator, value = word.partition("=")
        if not role or not separator or not value:
            raise ConfigurationError(f"{option} {word}: it is ROLE=VALUE")
        found.setdefault(role, []).append(value)
    return found


def pids_of(options: argparse.Namespace) -> dict[str, list[int]]:
    """`--pid` by role; raises `ConfigurationError`."""
    found: dict[str, list[int]] = {}
    for role, values in pairs("--pid", options.pid).items():
        for value in values:
            if not value.isdecimal():
                raise ConfigurationError(f"--pid {role}={value}: a PID is a number")
            found.setdefault(role, []).append(int(value))
    return found
