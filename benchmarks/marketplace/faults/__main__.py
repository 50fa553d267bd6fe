"""`python -m benchmarks.marketplace.faults`: scenario A through Kafka and the gateway, with a fault each minute. It
strikes a worker, the coordinator, the gateway, the broker, the store or the payment provider, and heals it. The audit
judges the end, and the states in snapshots that were taken meanwhile.

It ends with 0 if all criteria hold at the end and at each sampled epoch, no reply came twice, all processes came back,
and the engine's memory is flat; else with 1, and with 2 for an option that cannot be.
"""

from __future__ import annotations

import argparse
import sys
import time
from datetime import timedelta

from benchmarks.driver.clients import ClientFailed
from benchmarks.driver.command import quieten
from benchmarks.driver.one_at_a_time import load_test
from benchmarks.driver.summary import summary
from benchmarks.marketplace.audit.audit import audit, checked
from benchmarks.marketplace.audit.reading import CannotRead
from benchmarks.marketplace.faults.kinds import FAULTS
from benchmarks.marketplace.faults.memory import JUDGED_MINUTES_MIN, STATEFUL, growth
from benchmarks.marketplace.faults.report import fault_lines, memory_lines, wrongs
from benchmarks.marketplace.faults.run import Ran, ran
from benchmarks.marketplace.faults.samples import judged
from benchmarks.marketplace.options import add_options
from benchmarks.marketplace.provider.own import OWN, own_provider
from proof.cluster.child import ChildFailed
from proof.cluster.services import working_directory
from styx.cli.serving import run_loop
from styx.errors import ConfigurationError, StyxError


def main(words: list[str] | None = None) -> int:
    """Runs it, and prints what was done and found; returns the exit status."""
    options = _options(words)
    quieten()
    began_s = time.monotonic()

    def say(text: str) -> None:
        print(f"[{timedelta(seconds=int(time.monotonic() - began_s))}] {text}", file=sys.stderr, flush=True)

    directory = working_directory("marketplace-faults")
    try:
        with load_test(), own_provider(options.declined, options.unreachable) as provider:
            found = run_loop(ran(options, provider, directory, say))
    except ConfigurationError as error:
        print(error, file=sys.stderr)
        return 2
    except (StyxError, ClientFailed, ChildFailed, CannotRead, OSError) as error:
        print(f"FAILED: {type(error).__name__}: {error}")
        return 1
    say("judging")
    return _judge(found, options)


def _judge(found: Ran, options: argparse.Namespace) -> int:
    print(summary(found.result))
    points = found.result.timeline
    for line in fault_lines(found.struck, found.began_s, points, found.result.plan.interval_s):
        print(line)
    long_enough = options.minutes >= JUDGED_MINUTES_MIN
    taken_over = any(each.kind == STATEFUL for each in found.struck)
    copies = options.workers if taken_over else 1
    memory = growth(found.measured.probe.samples, found.stocks, copies)
    for line in memory_lines(memory, found.stocks, judged=long_enough):
        print(line)
    if not long_enough:
        print(f"memory       is judged in runs of {JUDGED_MINUTES_MIN:g} minutes and more")
    sampled = 0
    for sample, violations in judged(found.run, found.samples):
        print(f"sample       epoch {sample.epoch}, {sample.entries} entries: {len(violations)} violations")
        for violation in violations:
            print(f"VIOLATION    at epoch {sample.epoch}: {violation}")
        sampled += len(violations)
        if not violations:
            sample.file.unlink()
    violations = audit(found.run)
    for line in checked(found.run):
        print(f"audit        {line}")
    for violation in violations:
        print(f"VIOLATION    {violation}")
    wrong = wrongs(memory, judged=long_enough, violations=len(violations), sampled=sampled, repeated=found.repeated)
    print(f"verdict      {'FAILED: ' + '; '.join(wrong) if wrong else 'passed'}")
    return 1 if wrong else 0


def _options(words: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.marketplace.faults", description=__doc__)
    add = parser.add_argument
    add("--minutes", type=float, default=60.0, metavar="N", help="of load (default %(default)s)")
    add("--every", type=float, default=60.0, metavar="SECONDS", help="a fault each time (default %(default)s)")
    add("--sample", type=float, default=10.0, metavar="MINUTES", help="a state for the audit (default %(default)s)")
    add("--kinds", default=",".join(FAULTS), help="of faults (default %(default)s)")
    add("--rate", type=float, metavar="N", help="transactions a second (default %(default)s)")
    add("--workers", type=int, default=2, metavar="N", help="(default %(default)s)")
    add("--slots", type=int, default=16, metavar="N", help="(default %(default)s)")
    add("--clients", type=int, default=2, metavar="N", help="client processes (default %(default)s)")
    add("--snapshot-interval", type=float, default=5.0, metavar="SECONDS", help="(default %(default)s)")
    add("--timeout", type=float, default=60.0, metavar="SECONDS", help="of a request (default %(default)s)")
    add("--seed", type=int, default=1, metavar="N", help="decides requests and faults (default %(default)s)")
    add_options(parser)
    parser.set_defaults(rate=40.0, provider=OWN, declined=2.0, unreachable=1.0, size=0.1)
    options = parser.parse_args(words)
    if options.provider != OWN:
        parser.error("--provider is `own` here: this command kills it")
    options.kinds = options.kinds.split(",")
    if unknown := [kind for kind in options.kinds if kind not in FAULTS]:
        parser.error(f"there is no kind {unknown[0]!r}; there are {', '.join(FAULTS)}")
    for name, least in (("minutes", 0.1), ("every", 1.0), ("sample", 0.01), ("workers", 1), ("slots", 1)):
        if getattr(options, name) < least:
            parser.error(f"--{name} is at least {least:g}, got {getattr(options, name):g}")
    return options


if __name__ == "__main__":
    sys.exit(main())
