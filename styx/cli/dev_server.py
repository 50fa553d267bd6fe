"""What `styx dev` prints around an app that is served: where it is, what came back, and how it ended."""

from __future__ import annotations

import inspect
import logging
from pathlib import Path

from styx.app import App
from styx.cli.engine_facts import Start
from styx.cli.serving import ServingOptions, run_loop, serve_embedded
from styx.function_spec import FunctionSpec

_ANY_ADDRESS = ("0.0.0.0", "::", "")


def run_dev_server(app: App, options: ServingOptions) -> None:
    """Serves the app until it is told to stop; raises what ends it otherwise."""
    logging.basicConfig(level=logging.WARNING, format="%(asctime)s %(levelname)s %(name)s: %(message)s")

    def on_started(url: str, start: Start) -> None:
        _say(*opening_lines(app, url, options, start))

    def on_stopping() -> None:
        _say("Stopping: storing a snapshot …")

    epoch = run_loop(serve_embedded(app, options, on_started=on_started, on_stopping=on_stopping))
    _say(closing_line(epoch, options.data_dir))


def opening_lines(app: App, url: str, options: ServingOptions, start: Start) -> list[str]:
    """What is served, where, and with which data."""
    lines = [f"Serving {app.name} at {url}"]
    if options.host in _ANY_ADDRESS:
        lines[0] += " and at every other address of this machine"
    lines += function_lines(app)
    lines += [f"Docs  {url}/docs", f"Data  {options.data_dir} ({_recovered(start)})"]
    lines += [f"Code  {line}" for line in code_lines(start)]
    words = example(app, url)
    if words:
        lines.append(f"Try   {words}")
    lines.append("Ctrl-C stops it: requests in flight are finished and a snapshot is stored.")
    return lines


def code_lines(start: Start) -> list[str]:
    """What became of the data, if the code is not the one that ran last."""
    if not start.changed:
        return []
    lines = ["changed since the last start"]
    if start.replayed:
        code = "the code that had run them" if start.recorded_code else "the code as it is now"
        lines[0] += f"; {start.replayed} epochs of the log were run again on {code}"
    return [*lines, *start.notes]


def function_lines(app: App) -> list[str]:
    """What can be called over HTTP, and with which parameters."""
    functions = _functions(app)
    routes = [f"/v1/{spec.operator}/{{key}}/{spec.name}" for spec in functions]
    width = max(map(len, routes), default=0)
    return [f"  POST {route:<{width}}  ({_parameters(spec)})" for route, spec in zip(routes, functions, strict=True)]


def example(app: App, url: str) -> str:
    """A command that calls the app's first function; empty if it has none."""
    functions = _functions(app)
    return _example(functions[0], url) if functions else ""


def closing_line(epoch: int | None, data_dir: Path) -> str:
    """What is stored now."""
    if epoch is None:
        return f"Stopped; there was nothing to store in {data_dir}."
    return f"Stopped; the snapshot at epoch {epoch} is stored in {data_dir}."


def _recovered(start: Start) -> str:
    if start.epoch is None:
        return "new"
    source = "the log" if start.snapshot_epoch is None else f"the snapshot at epoch {start.snapshot_epoch}"
    if start.snapshot_epoch is not None and start.replayed:
        source += f" and {start.replayed} epochs of the log"
    return f"recovered up to epoch {start.epoch} from {source} in {start.seconds:.2f} s"


def _functions(app: App) -> list[FunctionSpec]:
    return [spec for operator in app.operators.values() for spec in operator.functions.values()]


def _parameters(spec: FunctionSpec) -> str:
    return ", ".join(map(str, spec.signature.parameters))


def _example(spec: FunctionSpec, url: str) -> str:
    variadic = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    parameters = [p for p in spec.signature.parameters if p.default is p.empty and p.kind not in variadic]
    words = ["styx", "call", spec.operator, "KEY", spec.name, *(p.name.upper() for p in parameters)]
    if url != "http://127.0.0.1:8080":
        words += ["--url", url]
    return " ".join(words)


def _say(*lines: str) -> None:
    print(*lines, sep="\n", flush=True)
