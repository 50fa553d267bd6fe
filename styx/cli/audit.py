"""`styx audit`: recorded epochs, run again beside a deployment, and held against its replies and snapshots."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

from cyclopts import Parameter

from styx.cli.common_options import HttpHost, HttpPort
from styx.cli.store_options import NO_OPTIONS, StoreOptions, secrets_help
from styx.store.stores import USAGE

if TYPE_CHECKING:
    from collections.abc import Callable

    from styx.audit.course import Audit, AuditOptions
    from styx.audit.metrics import AuditCounters
    from styx.audit.place import Place
    from styx.audit.verdict import Verdict
    from styx.cluster.facts_server import FactsAddress
    from styx.model.app import App

EXAMPLES: Final = f"""\
Examples:
  styx audit bank:app --data-dir .styx
  styx audit bank:app --log kafka://127.0.0.1:9092 --store s3://styx/bank \\
      --s3-endpoint http://s3.internal:9000
  styx audit bank:app --log kafka://k1:9092 --store file:///var/lib/bank \\
      --follow --json --http-port 9109

In the environment only:
{secrets_help("--store")}
      They need not be allowed to write.
  STYX_KAFKA_USERNAME, STYX_KAFKA_PASSWORD    of the log, if it asks for them

Exit codes:
  0    agreed: every reply, event and entry of the state is the same
  1    something differs; it is told what, and where it began
  2    it could not be judged, or an option is wrong
"""
GIB: Final = 1024**3
SCRATCH_BYTES: Final = 16 * GIB


def audit(
    app: Annotated[str, Parameter(help="MODULE:APP as it was deployed, such as bank:app.")],
    /,
    *,
    log: Annotated[
        str | None, Parameter(name="--log", help="The log: kafka://HOST:PORT[,HOST:PORT].", env_var="STYX_LOG")
    ] = None,
    store: Annotated[
        str | None, Parameter(name="--store", help=f"The cluster's store: {USAGE}.", env_var="STYX_STORE")
    ] = None,
    store_options: StoreOptions = NO_OPTIONS,
    data_dir: Annotated[Path | None, Parameter(help="An embedded engine's data directory, such as .styx.")] = None,
    after: Annotated[
        str | None,
        Parameter(help='Begin behind the snapshot of this epoch, or at the "beginning"; by default the last but one.'),
    ] = None,
    until: Annotated[int | None, Parameter(help="End with the snapshot of this epoch; by default the newest.")] = None,
    workers: Annotated[
        int | None, Parameter(help="Replay on so many workers; by default on another number than recorded.")
    ] = None,
    follow: Annotated[bool, Parameter(negative=(), help="Go on as snapshots come.")] = False,
    json: Annotated[bool, Parameter(negative=(), help="Print each verdict as a line of JSON.")] = False,
    scratch: Annotated[
        Path | None, Parameter(help="Where snapshots and log are copied to; by default a temporary directory.")
    ] = None,
    scratch_bytes: Annotated[int, Parameter(help="Bytes that one interval may take there.")] = SCRATCH_BYTES,
    http_host: HttpHost = "127.0.0.1",
    http_port: HttpPort = None,
) -> int:
    """Run recorded epochs again, and compare what they give.

    It copies two snapshots and the log between them, and replays the epochs in a
    process of its own: on another number of workers, with other hashes, at
    another time. Every reply, every event and every entry of the state must be
    what was recorded. Whatever differs is due to a function that is not
    deterministic: the clock, random numbers, the order of a set, global state.

    The deployment may be running. Its log and its store are only read. External
    functions are not called: their outcomes are in the log.
    """
    import asyncio

    from styx.cli.exit_codes import FAILURE, SUCCESS, USAGE

    begin = _epoch(after)
    _check(log, store, data_dir, follow, begin, until, scratch_bytes)
    from styx.audit.course import AuditOptions
    from styx.audit.metrics import AuditCounters
    from styx.cli.app_target import load_app

    def show(verdict: Verdict) -> None:
        from styx.audit.verdict import encode_verdict

        print(encode_verdict(verdict).decode() if json else "\n".join(verdict.lines()), flush=True)

    with _unjudged_failures(), _scratch(scratch) as directory:
        loaded = load_app(app)
        options = AuditOptions(
            scratch=directory, scratch_bytes=scratch_bytes, workers=workers, after=begin, until=until
        )
        place, counters = _place(loaded, log, store, store_options, data_dir), AuditCounters()
        course = _course(app, place, loaded, options, counters)
        with closing(place):
            asyncio.run(_run(course, show, counters, _facts(http_host, http_port), follow))
    if counters.differs:
        return FAILURE
    return USAGE if counters.unjudged else SUCCESS


def _epoch(after: str | None) -> int | None:
    from styx.audit.course import BEGINNING
    from styx.cli.exit_codes import usage_error

    if after is None or after == "beginning":
        return None if after is None else BEGINNING
    if not after.isdecimal():
        raise usage_error(f'--after is the epoch of a snapshot, or "beginning", got {after!r}')
    return int(after)


def _check(
    log: str | None,
    store: str | None,
    data_dir: Path | None,
    follow: bool,
    after: int | None,
    until: int | None,
    scratch_bytes: int,
) -> None:
    from styx.cli.exit_codes import usage_error

    if data_dir is None and (log is None or store is None):
        raise usage_error("say what to audit: --log and --store of a cluster, or --data-dir of an embedded engine")
    if follow and (after is not None or until is not None):
        raise usage_error("--follow begins at the newest snapshots: leave --after and --until out")
    if scratch_bytes < 1:
        raise usage_error(f"--scratch-bytes is a number from 1, got {scratch_bytes}")


@contextmanager
def _unjudged_failures() -> Iterator[None]:
    """Without a verdict nothing can be said, whatever the reason: that is no difference."""
    from styx.cli.exit_codes import USAGE, CommandFailed
    from styx.errors import StyxError

    try:
        yield
    except (StyxError, OSError) as error:
        raise CommandFailed(f"it could not be judged: {error}", USAGE) from error
    except CommandFailed as error:
        raise CommandFailed(error.message, USAGE) from error


@contextmanager
def _scratch(given: Path | None) -> Iterator[Path]:
    """A directory of the command's own, which it removes at its end."""
    import tempfile

    if given is not None:
        given.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="styx-audit-", dir=given) as directory:
        yield Path(directory)


def _place(app: App, log: str | None, store: str | None, options: StoreOptions, data_dir: Path | None) -> Place:
    from styx.audit.place import ClusterPlace, DirectoryPlace
    from styx.cli.store_options import StorePlace

    if data_dir is not None:
        return DirectoryPlace(data_dir, app)
    from styx.kafka.address import parse_kafka_url
    from styx.kafka.reader import KafkaReader
    from styx.kafka.topics import topics_of

    assert log is not None
    assert store is not None
    reader = KafkaReader(parse_kafka_url(log), topics_of(app.name))
    return ClusterPlace(StorePlace(store, options).open_to_read(), reader, app)


def _course(target: str, place: Place, app: App, options: AuditOptions, counters: AuditCounters) -> Audit:
    import sys

    from styx.audit.apart import judge_apart
    from styx.audit.course import Audit

    command = (sys.executable, "-m", "styx.cli.audit_process", target)

    async def judge(case: Path, objects: Path, workers: int | None, trace: Path | None) -> Verdict:
        return await judge_apart(command, case, objects, workers, trace)

    return Audit(place, app, options, judge, counters)


def _facts(host: str, port: int | None) -> FactsAddress:
    import os

    from styx.cli.cluster_setup import SECRET_FILE_VARIABLE, SECRET_VARIABLE, facts_address, secret_of

    given = os.environ.get(SECRET_VARIABLE) or os.environ.get(SECRET_FILE_VARIABLE)
    # Without the secret nobody could ask it from elsewhere.
    return facts_address(host, port, secret_of(os.environ) if given else os.urandom(16))


async def _run(
    course: Audit, show: Callable[[Verdict], None], counters: AuditCounters, facts: FactsAddress, follow: bool
) -> None:
    from styx.cli.cluster_process import until_told
    from styx.cluster.facts_server import facts_server, metrics_page, well

    async def work() -> None:
        if not follow:
            show(await course.once())
            return
        async for verdict in course.follow():
            show(verdict)

    pages = {"/healthz": lambda: well(None), "/metrics": lambda: metrics_page(counters.text())}
    async with facts_server(facts, pages):
        await until_told(work())
