"""`styx up`: its options, help and exit codes."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Final

from cyclopts import Parameter

from styx.cli.common_options import CLUSTER_DEFAULT, SECRETS_HELP, ClusterName, ClusterNumbers, DataOptions
from styx.cli.front_options import FrontOptions

EXAMPLES: Final = f"""\
Examples:
  styx up bank:app --workers 2 --log kafka://127.0.0.1:9092 --store s3://styx/bank
  styx up bank:app --log kafka://127.0.0.1:9092 --store file:///var/lib/bank
  styx status
  styx scale 3
  styx deploy bank:app

{SECRETS_HELP}\
  A secret is made up if none is set.

Exit codes:
  0    stopped by Ctrl-C or SIGTERM, everything stored
  1    a process could not be kept running, or the app was refused
  2    there is no such App, or an option is wrong
"""
WORKERS_MAX: Final = 256


def up(
    target: Annotated[
        str,
        Parameter(
            name="MODULE:APP",
            help="The App: bank:app, shop.bank:app or src/bank.py:app. ':app' may be left out.",
            env_var="STYX_APP",
        ),
    ],
    /,
    *,
    data: DataOptions,
    workers: Annotated[int, Parameter(help="Worker processes; styx scale changes it.", env_var="STYX_WORKERS")] = 2,
    gateways: Annotated[int, Parameter(help="Gateway processes, on consecutive ports.", env_var="STYX_GATEWAYS")] = 1,
    host: Annotated[
        str, Parameter(help="Address of the gateways; 0.0.0.0 for all.", env_var="STYX_HOST")
    ] = "127.0.0.1",
    port: Annotated[int, Parameter(help="The first gateway's port; 0 takes free ones.", env_var="STYX_PORT")] = 8080,
    front: FrontOptions | None = None,
    coordinator_port: Annotated[
        int, Parameter(help="The coordinator's port; 0 takes a free one.", env_var="STYX_COORDINATOR_PORT")
    ] = 0,
    http_port: Annotated[
        int,
        Parameter(help="Port of the coordinator's /status and /metrics; 0 takes a free one.", env_var="STYX_HTTP_PORT"),
    ] = 0,
    numbers: ClusterNumbers | None = None,
    cluster: ClusterName = CLUSTER_DEFAULT,
    run_dir: Annotated[
        Path | None, Parameter(help="Where other commands find it; .styx/run/APP by default.", env_var="STYX_RUN_DIR")
    ] = None,
) -> None:
    """Run a whole cluster on this machine, and keep it running.

    Starts a coordinator, workers and a gateway as processes of their own,
    deploys the app, and starts again whatever dies. Log and store are yours.
    If the app reads topics of others, a process of styx ingest is among them.
    Ctrl-C or SIGTERM finishes the requests in flight and stores a snapshot.
    status, scale, deploy and call find it when run in the same directory.
    """
    from styx.cli.exit_codes import usage_error

    numbers = numbers or ClusterNumbers()
    numbers.check(workers)
    for option, number in (("--port", port), ("--coordinator-port", coordinator_port), ("--http-port", http_port)):
        if not 0 <= number <= 65_535 - gateways:
            raise usage_error(f"{option} is a number from 0 to {65_535 - gateways}, got {number}")
    if not 1 <= gateways <= WORKERS_MAX or workers > WORKERS_MAX:
        raise usage_error(f"--gateways and --workers are numbers from 1 to {WORKERS_MAX}, got {gateways} and {workers}")

    from styx.cli.app_target import load_app

    app = load_app(target)

    from styx.cli.front_options import front_of

    front = front or FrontOptions()
    front_of(front, host)

    from styx.cli.run_directory import ROOT
    from styx.cli.up.main import run_cluster
    from styx.cli.up.plan import UpPlan
    from styx.model.ingest import Ingest
    from styx.process.ports import free_port

    plan = UpPlan(
        app=app.name,
        cluster=cluster,
        workers=workers,
        data=data,
        host=host,
        front=front,
        gateway_ports=[port + number if port else free_port() for number in range(gateways)],
        coordinator_port=coordinator_port or free_port(),
        facts_port=http_port or free_port(),
        numbers=numbers,
        directory=run_dir or ROOT / app.name,
        ingests=any(isinstance(operator, Ingest) for operator in app.operators.values()),
    )
    run_cluster(plan, app)
