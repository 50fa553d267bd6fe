"""Locust users that send a workload's requests to a gateway. A locustfile makes a subclass. There is no audit.

Locust is a closed loop: each user waits for its reply, and sends less while the target is slow. So its figures differ
from those of the driver's open loop. The workload's options are taken from the environment variable WORKLOAD_OPTIONS,
as on the workload's own command line, because Locust has options of the same names: WORKLOAD_OPTIONS="--keys 1000
--zipf 0.9".

Locust replaces the blocking parts of the standard library as soon as it is imported, so only it imports this.
"""

from __future__ import annotations

import argparse
import os
import shlex
import time
from collections.abc import Callable
from typing import ClassVar, Final

from locust import FastHttpUser, task
from locust.runners import WorkerRunner

from benchmarks.driver import options as driver_options
from benchmarks.driver.http_request import body_of, path_of, reply_of, verdict_of
from benchmarks.driver.workload import Generator, NobodyIsFree, Planned, Workload
from styx.messages import Reply

VARIABLE: Final = "WORKLOAD_OPTIONS"
SEED: Final = 1
PAUSE_SECONDS: Final = 0.05
"""Until a user tries again when nobody is free."""
_generators: dict[Workload, Generator] = {}


class WorkloadUser(FastHttpUser):
    """One connection with one request at a time. `workload` is what `workload_of` gives.

    A committed request is a success under its kind. An abort with an error type in `expected_aborts` is a success under
    `KIND aborted`. Every other reply is a failure of its kind, with the reply's message. If the workload `follows`
    replies, its generator is told of them, and the user sends the requests that follow.
    """

    abstract = True
    host = "http://127.0.0.1:8080"
    workload: ClassVar[Workload]
    expected_aborts: ClassVar[frozenset[str]] = frozenset()
    follows: ClassVar[bool] = False

    @task
    def request(self) -> None:
        """The next request of this process's generator, and those that follow it."""
        generator = self._generator()
        try:
            left = [generator.next()]
        except NobodyIsFree:
            time.sleep(PAUSE_SECONDS)
            return
        while left:
            planned = left.pop(0)
            reply = self._reply(planned)
            if not self.follows:
                return
            if reply is None:
                generator.unknown(planned)
            else:
                left += generator.answered(planned, reply) or ()

    def _reply(self, planned: Planned) -> Reply | None:
        with self.client.post(
            path_of(planned), data=body_of(planned), headers=_headers(), name=planned.kind, catch_response=True
        ) as response:
            verdict = verdict_of(planned.kind, response.status_code, response.content or b"", self.expected_aborts)
            response.request_meta["name"] = verdict.name
            if verdict.failure:
                response.failure(verdict.failure)
            else:
                response.success()
            return reply_of(response.status_code, response.content or b"") if self.follows else None

    def _generator(self) -> Generator:
        """One generator for all users of this process. Drawing a request does not switch to another user."""
        generator = _generators.get(self.workload)
        if generator is None:
            runner = self.environment.runner
            worker = max(runner.worker_index, 0) if isinstance(runner, WorkerRunner) else 0
            generator = _generators[self.workload] = self.workload.generator(worker, worker + 1, SEED)
        return generator


def _headers() -> dict[str, str]:
    key = os.environ.get("STYX_API_KEY")
    return {"Content-Type": "application/json", **({"Authorization": f"Bearer {key}"} if key else {})}


def workload_of(
    add_options: Callable[[argparse.ArgumentParser], None], make_workload: Callable[[argparse.Namespace], Workload]
) -> Workload:
    """The workload with the options of the environment. If they are wrong, the process prints the reason and ends."""
    parser = argparse.ArgumentParser(prog=VARIABLE)
    driver_options.add_deployment_options(parser)
    add_options(parser)
    options = parser.parse_args(shlex.split(os.environ.get(VARIABLE, "")))
    driver_options.check(options)
    return make_workload(options)
