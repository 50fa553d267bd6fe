"""One client process. It connects its target, then runs the plans that the parent sends, and answers the parent's
questions. Messages are msgpack on one pipe. The process ends when the parent has closed the pipe.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
import sys
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import Any, Final, NamedTuple

import msgspec

from benchmarks.driver.loops import loop_of
from benchmarks.driver.plan import LoadPlan
from benchmarks.driver.reports import Progress, RunReport
from benchmarks.driver.sending import Sending
from benchmarks.driver.target import GeneratorFactory, Target, TargetFactory
from styx.cli.serving import SWITCH_INTERVAL_S, run_loop
from styx.errors import describe
from styx.process.memory import tune_collector


class ClientSpec(NamedTuple):
    """The parts of a client process; picklable."""

    make_target: TargetFactory
    make_generator: GeneratorFactory
    client: int
    clients: int
    seed: int
    timeout_s: float
    in_flight_max: int


class Run(msgspec.Struct, tag=True):
    """To the client: a plan, and its start (`time.monotonic` seconds, a clock that all processes of a machine
    share).
    """

    plan: LoadPlan
    start_s: float


class Stop(msgspec.Struct, tag=True):
    """To the client: send nothing new in this run."""

    why: str


class TellWitness(msgspec.Struct, tag=True):
    """To the client: a request for the generator's witness."""


class Ready(msgspec.Struct, tag=True):
    """To the parent: connected."""


class Told(msgspec.Struct, tag=True):
    """To the parent."""

    progress: Progress


class GivenUp(msgspec.Struct, tag=True):
    """To the parent: the run is given up. Its report comes when no request is under way any more."""

    why: str


class Ended(msgspec.Struct, tag=True):
    """To the parent: a run has ended, and no request is under way."""

    report: RunReport


class Witnessed(msgspec.Struct, tag=True):
    """To the parent."""

    witness: Any


class Failed(msgspec.Struct, tag=True):
    """To the parent: the error that ends the process."""

    error: str


Order = Run | Stop | TellWitness
Answer = Ready | Told | GivenUp | Ended | Witnessed | Failed
_encode = msgspec.msgpack.Encoder().encode
_orders: Final[msgspec.msgpack.Decoder[Order]] = msgspec.msgpack.Decoder(Order)
_answers: Final[msgspec.msgpack.Decoder[Answer]] = msgspec.msgpack.Decoder(Answer)


def send(pipe: Connection, message: Order | Answer) -> None:
    """Sends a message. Blocks while the other side does not read. Raises `OSError` if the other side is gone."""
    pipe.send_bytes(_encode(message))


def receive_answer(pipe: Connection) -> Answer:
    """The client's next message; blocks. Raises `EOFError` if the client has ended."""
    return _answers.decode(pipe.recv_bytes())


def when_readable(pipe: Connection, call: Callable[[], None]) -> None:
    """Calls `heard` on this event loop for each message."""
    asyncio.get_running_loop().add_reader(pipe.fileno(), call)
    # uvloop has made it non-blocking, and a `Connection` takes half a message for a failure.
    os.set_blocking(pipe.fileno(), True)


def client_main(pipe: Connection, spec: ClientSpec) -> None:
    """The main function of the process."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the parent
    logging.basicConfig(level=logging.ERROR, format=f"client {spec.client}: %(message)s")
    logging.getLogger("aiokafka").setLevel(logging.CRITICAL)
    sys.setswitchinterval(SWITCH_INTERVAL_S)
    try:
        run_loop(_serve(pipe, spec))
    except (EOFError, BrokenPipeError):
        pass  # the parent is gone
    except Exception as error:
        logging.getLogger(__name__).debug("the client failed", exc_info=True)
        send(pipe, Failed(": ".join(describe(error))))


async def _serve(pipe: Connection, spec: ClientSpec) -> None:
    generator = spec.make_generator(spec.client, spec.clients, spec.seed)
    target = spec.make_target(spec.timeout_s, spec.in_flight_max)
    orders: asyncio.Queue[Order | None] = asyncio.Queue()
    loop = asyncio.get_running_loop()
    running: Sending | None = None

    def readable() -> None:
        try:
            order = _orders.decode(pipe.recv_bytes())
        except (EOFError, OSError):
            loop.remove_reader(pipe.fileno())
            orders.put_nowait(None)
            if running is not None:
                running.stop("the parent is gone")
            return
        if isinstance(order, Stop):
            if running is not None:
                running.stop(order.why)
        else:
            orders.put_nowait(order)

    await target.connect()
    try:
        when_readable(pipe, readable)
        tune_collector()
        send(pipe, Ready())
        while (order := await orders.get()) is not None:
            if isinstance(order, Run):
                running = _loop(target, spec, order, generator, pipe)
                report = await running.run()
                running = None
                send(pipe, Ended(report))
            else:
                send(pipe, Witnessed(generator.witness()))
    finally:
        await target.close()


def _loop(target: Target, spec: ClientSpec, order: Run, generator: Any, pipe: Connection) -> Sending:
    def tell(progress: Progress) -> None:
        send(pipe, Told(progress))

    def gave_up(why: str) -> None:
        with contextlib.suppress(OSError):  # the parent may be gone, and that the reason
            send(pipe, GivenUp(why))

    return loop_of(target, generator, order.plan, spec.client, order.start_s, tell, gave_up)
