"""The echo: it reads requests and appends replies with the code of a worker, and does nothing in between.

So it is the upper bound for an engine. It decodes each request and replies with the request's arguments. It has no
state and no epochs. `python -m benchmarks.reference.echo_process KAFKA APP SLOTS REPLIES`.
"""

from __future__ import annotations

import argparse
import asyncio
from typing import Final

from styx.cli.cluster_process import run_process, until_told
from styx.cluster.wire import worker_producer
from styx.cluster.worker.reply_log import QUEUED_BYTES_MAX, ReplyLog
from styx.kafka.appender import Appender
from styx.kafka.tail import RequestFeed
from styx.kafka.topics import topics_of
from styx.log.base import Arrival
from styx.messages import ReplyRecord, decode_request

READY: Final = "echoing"
"""The line that it prints once it reads."""


class Echo:
    """Echoes what comes into the requests topic of `app`, from its beginning, until `run` is cancelled."""

    def __init__(self, kafka: str, app: str, slots: int, reply_partitions: int) -> None:
        self._topics = topics_of(app)
        self._slots = slots
        self._loop = asyncio.get_running_loop()
        self._failed: asyncio.Future[None] = self._loop.create_future()
        # Transactional and fenced like a worker's, so that what Kafka does for it is the same.
        self._appender = Appender(kafka, transactional_id=worker_producer(app, 0), on_failure=self._fail)
        self._feed = RequestFeed(kafka, self._topics.requests, deliver=self._deliver, on_failure=self._fail)
        self._replies = ReplyLog(self._appender, self._topics.replies, reply_partitions, self._fail)
        self._turn: list[ReplyRecord] = []
        self._tid = 0
        self._paused = False

    async def run(self) -> None:
        """Raises what the feed or the appender fails with."""
        await self._appender.start([self._topics.replies])
        try:
            await self._feed.start()
            self._feed.assign(dict.fromkeys(range(self._slots), 0))
            print(READY, flush=True)
            await self._failed
        finally:
            await self._feed.stop()
            await self._appender.stop()

    def _fail(self, error: BaseException) -> None:
        if not self._failed.done():
            self._failed.set_exception(error)

    def _deliver(self, arrived: dict[int, list[Arrival]]) -> None:
        turn, tid = self._turn, self._tid
        if not turn:
            # What one answer of the broker has of all slots leaves together, as it does from a worker's pass.
            self._loop.call_soon(self._emit)
        for arrivals in arrived.values():
            for _, _, payload in arrivals:
                request = decode_request(payload)
                tid += 1
                turn.append(ReplyRecord(request.request_id, tid, tid, 0, 1, request.params, None, request.reply_to))
        self._tid = tid

    def _emit(self) -> None:
        turn, self._turn = self._turn, []
        self._replies.emit(turn)
        if self._appender.queued_bytes > QUEUED_BYTES_MAX and not self._paused:
            self._paused = True
            for slot in range(self._slots):
                self._feed.pause(slot)
            self._replies.when_durable(self._resume)

    def _resume(self) -> None:
        self._paused = False
        for slot in range(self._slots):
            self._feed.resume(slot)


async def echo(kafka: str, app: str, slots: int, reply_partitions: int) -> None:
    """Echoes until SIGTERM or SIGINT."""
    await until_told(Echo(kafka, app, slots, reply_partitions).run())


def main() -> None:
    """The process."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.reference.echo_process", description=__doc__)
    parser.add_argument("kafka", help="HOST:PORT of the broker")
    parser.add_argument("app", help="name of the app whose topics it serves; they must be there")
    parser.add_argument("slots", type=int, help="partitions of the requests topic")
    parser.add_argument("replies", type=int, help="partitions of the replies topic")
    options = parser.parse_args()
    run_process("echo", echo(options.kafka, options.app, options.slots, options.replies))


if __name__ == "__main__":
    main()
