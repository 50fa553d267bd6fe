"""`styx set-aside`: a request at which the engine fails is refused from now on, and the rest goes on."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Final

from cyclopts import Parameter

from styx.cli.common_options import ANSWER_SECONDS_DEFAULT, AnswerTimeout, ClusterOrLocal, check_timeout
from styx.cli.store_options import NO_OPTIONS, StoreOptions, StorePlace, secrets_help

EXAMPLES: Final = f"""\
Examples:
  styx set-aside 3:1041 --dry-run
  styx set-aside 3:1041 --data-dir /var/lib/bank
  styx set-aside 3:1041 --coordinator 10.0.0.7:7070
  styx set-aside 3:1041 --store s3://styx/bank --log kafka://k1:9092 \\
      --s3-endpoint http://127.0.0.1:9000
  styx set-aside --coordinator 10.0.0.7:7070

In the environment only, with --coordinator:
  STYX_SECRET, or STYX_SECRET_FILE    the cluster's secret; not needed for a
  cluster that styx up runs from this directory
In the environment only, with --store:
{secrets_help("--store")}
  STYX_KAFKA_USERNAME, STYX_KAFKA_PASSWORD    of the log, if it asks for them

Exit codes:
  0    set aside, or listed; with --dry-run, it could be
  1    the data directory is in use, or coordinator, log or store are out of
       reach
  2    an option is wrong, there is no such directory or no such request, or the
       request was answered or set aside already
"""


def set_aside(
    place: Annotated[
        str | None, Parameter(name="SLOT:OFFSET", help="Which request, as the log line or the failure names it.")
    ] = None,
    /,
    *,
    data_dir: Annotated[
        Path, Parameter(help="Data directory of an embedded engine that has ended.", env_var="STYX_DATA_DIR")
    ] = Path(".styx"),
    coordinator: Annotated[
        str | None, Parameter(help="A running cluster's coordinator, HOST:PORT.", env_var="STYX_COORDINATOR")
    ] = None,
    cluster: ClusterOrLocal = None,
    store: Annotated[
        str | None, Parameter(help="A stopped cluster's store, together with --log.", env_var="STYX_STORE")
    ] = None,
    log: Annotated[str | None, Parameter(help="Its log: kafka://HOST:PORT[,HOST:PORT].", env_var="STYX_LOG")] = None,
    store_options: StoreOptions = NO_OPTIONS,
    dry_run: Annotated[
        bool, Parameter(negative=(), help="Only describe the request, and say whether it can be set aside.")
    ] = False,
    timeout: AnswerTimeout = ANSWER_SECONDS_DEFAULT,
) -> None:
    """Refuse a request at which the engine fails or hangs whenever it meets it.

    The request never runs, and its requester gets a rejection that says so.
    Without a place, the command lists the requests that are set aside. It refuses
    a request that was answered, because the answer would be taken back.
    For a running cluster give --coordinator: workers that a function holds up are
    left out, and the others go on at once. For a stopped cluster give --store and
    --log, for an embedded engine --data-dir: then it takes effect at the start.
    This cannot be undone: later transactions may depend on the refusal, and a
    replay has to repeat it. Send the request again instead, under another id.
    """
    if coordinator is not None:
        print(_of_running_cluster(place, coordinator, cluster, dry_run, timeout))
    elif store is not None:
        print(_of_stopped_cluster(place, log, StorePlace(store, store_options), dry_run))
    else:
        print(_of_embedded(place, data_dir, dry_run))


def _of_running_cluster(place: str | None, coordinator: str, cluster: str | None, dry_run: bool, timeout: float) -> str:
    from styx.cli.exit_codes import FAILURE, USAGE, CommandFailed
    from styx.cli.operator_link import operator_link
    from styx.cluster.wire import SetAside
    from styx.set_aside import place_of

    check_timeout(timeout)
    if place is not None:
        place_of(place)
    answer = operator_link(coordinator, cluster).ask(SetAside(place or "", dry_run), timeout)
    if not answer.done:
        raise CommandFailed(answer.text, FAILURE if answer.failed else USAGE)
    return answer.text


def _of_stopped_cluster(place: str | None, log: str | None, store: StorePlace, dry_run: bool) -> str:
    from styx.cli.exit_codes import usage_error
    from styx.cluster.asides import put_aside
    from styx.kafka.address import parse_kafka_url
    from styx.set_aside import listing, read

    if place is None:
        return listing(read(store.open()))
    if log is None:
        raise usage_error("--store needs --log as well: whether the request is there and unanswered is seen there")
    return put_aside(place, parse_kafka_url(log), store.open(), dry_run)


def _of_embedded(place: str | None, data_dir: Path, dry_run: bool) -> str:
    from styx.cli.exit_codes import usage_error
    from styx.embedded_engine.asides import put_aside, put_asides
    from styx.embedded_engine.storage import OBJECTS_NAME
    from styx.set_aside import listing

    if not (data_dir / OBJECTS_NAME).is_dir():
        raise usage_error(f"--data-dir {data_dir} is no engine's directory; of a cluster, give --coordinator")
    return listing(put_asides(data_dir)) if place is None else put_aside(place, data_dir, dry_run)
