"""A newcomer's first hour: the steps of the documents, and checks of their promises.

Every step is one that a person would type. The first failed step ends the hour, and its output is shown.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Final

from programs import HourFailed, Load, Server, answer_behind, http, run

ROOT: Final = Path(__file__).resolve().parents[2]
LOG_CHARS_MAX: Final = 4_000
"""The number of a program's last lines shown after a failure."""
BUGGY: Final = '''"""A tea shop."""
from styx import App, Context, Operator

tea = Operator("tea")


@tea.register
async def add(ctx: Context, count: int) -> int:
    stock = await ctx.get({"count": 0})
    stock["count"] += count
    await ctx.put(stock)
    return stock["cuont"]


app = App("teashop", [tea])
'''
BUG: Final = 'stock["cuont"]'
FIX: Final = 'stock["count"]'
SECOND_VERSION: Final = 'stock["count"] * 100'
WEB: Final = '''"""The same app inside FastAPI."""
from contextlib import asynccontextmanager

import styx
from fastapi import FastAPI, Request
from teashop import app as shop


@asynccontextmanager
async def lifespan(web: FastAPI):
    async with styx.embedded(shop, "web-data") as client:
        web.state.shop = client
        web.mount("/shop", styx.asgi(client))
        yield


web = FastAPI(lifespan=lifespan)


@web.post("/teas/{name}")
async def add(name: str, count: int, request: Request) -> dict[str, int]:
    return {"count": await request.app.state.shop.call("tea", name, "add", count)}
'''


def expect(what: str, found: object, wanted: object) -> None:
    """Raises `HourFailed` unless they are equal."""
    if found != wanted:
        raise HourFailed(f"{what}: {wanted!r} was expected, and there is {found!r}")


class Hour:
    """One clone and one project beside it. `kafka` is a broker's HOST:PORT; None starts one."""

    def __init__(self, directory: Path, kafka: str | None, stack: ExitStack) -> None:
        self.directory = directory
        self.clone = directory / "styx"
        self.project = directory / "teashop"
        self.kafka = kafka
        self._stack = stack
        self._servers = 0

    @property
    def bin(self) -> Path:
        """The clone's programs."""
        return self.clone / ".venv" / "bin"

    def serve(self, *words: str | Path, **more: str) -> Server:
        """Starts a program in the project's directory; it ends with the hour."""
        self._servers += 1
        server = Server(words, self.project, self.directory / f"server-{self._servers}.log", **more)
        self._stack.callback(server.kill)
        return server

    def styx(self, *words: str) -> str:
        """The output of a command of styx."""
        return run([self.bin / "styx", *words], self.project)

    def write(self, name: str, text: str) -> None:
        """A file of the project."""
        (self.project / name).write_text(text, "utf-8")

    # What the hour consists of ------------------------------------------------------------------------------

    def clones(self) -> str:
        run(["git", "clone", "--quiet", ROOT, self.clone], self.directory)
        return "a fresh clone"

    def runs_the_demo(self) -> str:
        said = run([self.clone / "scripts" / "demo", "--seconds", "2"], self.clone)
        expect("the demo's verdict", "verdict    the audit holds" in said, True)
        size = sum(path.lstat().st_size for path in (self.clone / ".venv").rglob("*") if path.is_file())
        return f"the demo holds; .venv has {size / 1e6:,.0f} MB"

    def writes_an_app_with_a_bug(self) -> str:
        self.project.mkdir()
        self.write("teashop.py", BUGGY)
        self.dev = self.serve(self.bin / "styx", "dev", "teashop:app", "--reload", "--port", "0")
        self.url = self.dev.url()
        status, answer = http("POST", f"{self.url}/v1/tea/green/add", [5])
        expect("the status of the buggy call", status, 409)
        expect("its error", answer["error"]["type"], "KeyError")
        return "an app of one's own, with a bug: the caller sees a KeyError"

    def sees_the_traceback(self) -> str:
        line = 1 + BUGGY[: BUGGY.index(BUG)].count("\n")
        self.dev.wait_for(f"teashop.py:{line}")
        said = self.styx("errors", "--url", self.url)
        expect("the mistakes that are remembered", f"teashop.py:{line}" in said, True)
        return f"the terminal shows teashop.py:{line}, and so does styx errors"

    def fixes_it_by_reload(self) -> str:
        self.write("teashop.py", BUGGY.replace(BUG, FIX))
        start_s = time.monotonic()
        answer = answer_behind(409, "POST", f"{self.url}/v1/tea/green/add", [5])
        expect("the first result", answer["result"], 5)
        return f"saved, and the fixed code answers {time.monotonic() - start_s:.1f} s later"

    def looks_at_the_state(self) -> str:
        expect("the state over HTTP", http("GET", f"{self.url}/v1/tea/green")[1]["result"], {"count": 5})
        said = self.styx("state", "get", "tea", "green", "--url", self.url)
        expect("the state on the command line", '"count": 5' in said or '"count":5' in said, True)
        self.dev.stop()
        return "the state is there, over HTTP and on the command line"

    def embeds_it_in_fastapi(self) -> str:
        run([self.bin / "python", "-m", "pip", "--quiet", "install", "fastapi"], self.project)
        self.write("web.py", WEB)
        web = self.serve(self.bin / "python", "-m", "uvicorn", "web:web", "--port", "0")
        web.wait_for("Uvicorn running on")
        url = web.url()
        expect("an answer of FastAPI", http("POST", f"{url}/teas/black?count=7"), (200, {"count": 7}))
        expect("the mounted gateway", http("POST", f"{url}/shop/v1/tea/black/add", [1])[1]["result"], 8)
        web.stop()
        return "the same app inside FastAPI, with the gateway mounted"

    def starts_a_cluster(self) -> str:
        if self.kafka is None:
            data = {"STYX_SERVICES_DATA": str(self.directory / "services")}
            run([self.clone / "scripts" / "services", "start", "kafka"], self.clone, **data)
            stop = [self.clone / "scripts" / "services", "stop", "kafka"]
            self._stack.callback(run, stop, self.clone, **data)
            self.kafka = "127.0.0.1:9092"
        log, store = f"kafka://{self.kafka}", f"file://{self.directory / 'store'}"
        words = ("up", "teashop:app", "--workers", "2", "--slots", "4", "--log", log, "--store", store, "--port", "0")
        self.up = self.serve(self.bin / "styx", *words)
        self.url = self.up.url()
        expect("the cluster's first answer", self.adds(3), 3)
        return "a cluster of two workers answers"

    def adds(self, count: int) -> object:
        """The result of a call, once the gateway is ready."""
        return answer_behind(503, "POST", f"{self.url}/v1/tea/green/add", [count])["result"]

    def deploys(self) -> str:
        self.write("teashop.py", BUGGY.replace(BUG, SECOND_VERSION))
        with Load(f"{self.url}/v1/tea/white/add", [1]) as others:
            self.styx("deploy", "teashop:app")
        expect("an answer of the second version", self.adds(1), 400)
        return f"the second version is deployed, with its state; {others.answered()} requests meanwhile, all well"

    def rolls_back(self) -> str:
        with Load(f"{self.url}/v1/tea/white/add", [1]) as others:
            self.styx("deploy", "--rollback")
        expect("an answer of the first version", self.adds(1), 5)
        self.up.stop()
        return f"rolled back, and ended; {others.answered()} requests meanwhile, all well"


def main() -> int:
    """The command; returns its exit status."""
    parser = argparse.ArgumentParser(prog="scripts/first-hour", description=__doc__)
    parser.add_argument("--kafka", metavar="HOST:PORT", help="a broker to use, instead of starting one on port 9092")
    parser.add_argument("--without-cluster", action="store_true", help="leave out what needs a broker")
    parser.add_argument("--keep", action="store_true", help="leave the directory with clone, project and logs")
    options = parser.parse_args()
    directory = Path(tempfile.mkdtemp(prefix="styx-first-hour-"))
    start_s = time.monotonic()
    try:
        with ExitStack() as stack:
            hour = Hour(directory, options.kafka, stack)
            steps: list[Callable[[], str]] = [
                hour.clones,
                hour.runs_the_demo,
                hour.writes_an_app_with_a_bug,
                hour.sees_the_traceback,
                hour.fixes_it_by_reload,
                hour.looks_at_the_state,
                hour.embeds_it_in_fastapi,
            ]
            if not options.without_cluster:
                steps += [hour.starts_a_cluster, hour.deploys, hour.rolls_back]
            for step in steps:
                did = step()
                print(f"{time.monotonic() - start_s:6.1f} s  {did}", flush=True)
    except HourFailed as error:
        print(f"first-hour: {error}", file=sys.stderr)
        for log in sorted(directory.glob("server-*.log"))[-1:]:
            print(f"what served said last:\n{log.read_text(errors='replace')[-LOG_CHARS_MAX:]}", file=sys.stderr)
        return 1
    finally:
        if options.keep:
            print(f"kept: {directory}")
        else:
            shutil.rmtree(directory, ignore_errors=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
