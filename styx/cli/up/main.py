"""The program of `styx up`: checks, the secret, the supervisor in its run directory, and the printed lines."""

from __future__ import annotations

import asyncio
import os
import secrets
import socket
from typing import Final

from styx.cli.cluster_process import log_to_stderr
from styx.cli.cluster_setup import SECRET_FILE_VARIABLE, SECRET_VARIABLE, process_options, secret_of, security_of
from styx.cli.dev_server import function_lines, say
from styx.cli.example_call import command, example
from styx.cli.exit_codes import usage_error
from styx.cli.run_directory import held, secret_file, write_secret
from styx.cli.up.plan import LOOPBACK, UpPlan, child_environment
from styx.cli.up.supervisor import Supervisor
from styx.cluster.facts_access import TOKEN_FILE_VARIABLE, TOKEN_VARIABLE, token_of
from styx.cluster.options import ProcessOptions
from styx.deployment.package import pack
from styx.errors import ConfigurationError
from styx.model.app import App

SECRET_BYTES: Final = 32


def run_cluster(plan: UpPlan, app: App) -> None:
    """Runs the cluster until it is told to stop; raises `CommandFailed`, or `ConfigurationError` at the start."""
    log_to_stderr("up")
    with held(plan.directory):
        environment = _with_secret(plan)
        security = security_of(plan.cluster, environment)
        # Wrong values are reported once, here, not by each child, and before a child disturbs a running cluster.
        options = process_options("up", security, plan.coordinator, plan.data, plan.host, 0, environment=environment)
        _check_ports(plan)
        _check_store(options)
        package = pack(app, security.secret)
        secret = security.secret.decode("utf-8", "surrogateescape")
        write_secret(plan.directory, secret)

        async def run() -> None:
            inherited = child_environment(secret, environment)
            if plan.front.guarded and TOKEN_FILE_VARIABLE not in inherited:
                # Its gateway asks for keys, so its processes ask for a token before they tell their facts.
                inherited.setdefault(TOKEN_VARIABLE, token_of(security.secret))
            supervisor = Supervisor(plan, security, inherited, say)
            await supervisor.run(package, lambda text, pids: say(*opening_lines(app, plan, text, pids)))

        gateways = _count(len(plan.gateway_ports), "gateway")
        say(f"Starting a coordinator, {_count(plan.workers, 'worker')} and {gateways} …")
        asyncio.run(run())
        say("Stopped.")


def _check_ports(plan: UpPlan) -> None:
    for port in plan.gateway_ports:
        _check_port("--port", plan.host, port)
    _check_port("--coordinator-port", LOOPBACK, plan.coordinator_port)
    _check_port("--http-port", LOOPBACK, plan.facts_port)


def _check_port(option: str, host: str, port: int) -> None:
    """Raises `CommandFailed`, which names the option, if `port` cannot be listened on now."""
    try:
        socket.create_server((host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET).close()
    except OSError as error:
        raise usage_error(
            f"cannot listen on {host}, port {port}: {error.strerror or error}.\n"
            f"Choose another {option}; 0 takes a free one."
        ) from None


def _check_store(options: ProcessOptions) -> None:
    """Raises `ConfigurationError` if the store refuses; one that does not answer is waited for."""
    try:
        options.open_store()
    except ConfigurationError:
        raise
    except OSError as error:
        say(f"the store does not answer, and is waited for: {error}")


def _with_secret(plan: UpPlan) -> dict[str, str]:
    """The environment with a secret: the one that is set, else that of the last `styx up` here, else a new one.

    Raises `CommandFailed` if the one that is set differs from that of the last `styx up` here.
    """
    environment, known = dict(os.environ), secret_file(plan.directory)
    if not environment.get(SECRET_VARIABLE) and not environment.get(SECRET_FILE_VARIABLE):
        if known.exists():
            environment[SECRET_FILE_VARIABLE] = str(known)
        else:
            environment[SECRET_VARIABLE] = secrets.token_hex(SECRET_BYTES)
    elif known.exists() and known.read_bytes().strip() != secret_of(environment):
        raise usage_error(
            f"the secret that is set is not the one in {known}, which the last styx up here used.\n"
            f"Unset {SECRET_VARIABLE} and {SECRET_FILE_VARIABLE} to use that one, or remove the file."
        )
    return environment


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"


def opening_lines(app: App, plan: UpPlan, running: str, pids: dict[str, int]) -> list[str]:
    """The lines of the start: the app, its URLs and functions, log and store, the processes."""
    url = plan.gateway_urls[0]
    lines = [f"Serving {app.name} at {' and '.join(plan.gateway_urls)}", *function_lines(app)]
    lines += [
        f"Docs   {url}/docs",
        f"Log    {plan.data.log}",
        f"Store  {plan.data.store}",
        f"Code   {running}",
        f"Secret {secret_file(plan.directory)}: keep it with the store, whose code it signs",
        f"Pids   up {os.getpid()}, " + ", ".join(f"{name} {pid}" for name, pid in pids.items()),
        f"Facts  {plan.facts_url}/status, or: {command()} status",
    ]
    words = example(app, url, guarded=plan.front.guarded)
    if words:
        lines.append(f"Try    {words}")
    lines.append("Ctrl-C stops it: requests in flight are finished and a snapshot is stored.")
    return lines
