"""Simulated clients: random requests appended to the log in bursts, some of them again with the same idempotency
key.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

import msgspec
from msgspec.structs import replace

from proof.random_requests import random_load, random_read, random_request
from proof.simulation.plan import SimulationPlan
from proof.simulation.world import World
from proof.travelling_requests import random_travel
from styx.errors import InTransactionError
from styx.log.base import Stream
from styx.messages import Request, encode_request
from styx.model.execution import resolve_request

IDLE_HOUR_S = 3600.0
_CALLS = ("call", "carry", "fresh")


class Clients:
    """`sent` maps request ids to the request and its time in the log, in microseconds; `expected` counts replies."""

    def __init__(self, world: World, plan: SimulationPlan) -> None:
        self.sent: dict[str, tuple[Request, int]] = {}
        self.expected = 0
        self.end_s = 0.0
        self._world = world
        self._plan = plan
        self._travels = Random(f"travels {plan.seed}")
        self._externals = Random(f"outside calls {plan.seed}")
        self._hidden = Random(f"hidden errors {plan.seed}")
        self._spins = Random(f"spins of {plan.seed}")
        rng = Random(f"clients {plan.seed}")
        starts = sorted(rng.random() * plan.duration_s for _ in range(plan.bursts))
        idle_from_s = min((f.at_s for f in plan.faults if f.kind == "idle hour"), default=float("inf"))
        for number in range(plan.requests):
            request = random_request(rng, plan.profile, f"r{number}")
            if self._travels.random() < plan.travels:
                request = random_travel(self._travels, plan.profile, f"r{number}")
            if self._externals.random() < plan.externals:
                request = _with_step(request, self._externals, _external_step)
            if self._hidden.random() < plan.hidden_errors:
                request = _with_step(request, self._hidden, _hidden_error_step)
            if self._spins.random() < plan.spins:
                request = _with_step(request, self._spins, _spinning_step)
            at_s = rng.choice(starts) + rng.random() * 0.01
            if rng.random() < plan.repeats:
                request = replace(request, idempotency_key=f"once {number}")
                for again in range(rng.choice([1, 1, 2])):
                    self._plan_send(
                        at_s + rng.random() * rng.choice([0.01, 1.0]),
                        idle_from_s,
                        replace(request, request_id=f"r{number} again {again}"),
                    )
            self._plan_send(at_s, idle_from_s, request)
        load = lambda rng, number: random_load(rng, plan.profile, plan.slots, f"l{number}")  # noqa: E731 - it fits a line
        read = lambda rng, number: random_read(rng, plan.profile, f"g{number}")  # noqa: E731
        self._plan_beside("load", plan.loads, starts, idle_from_s, load)
        self._plan_beside("read", plan.reads, starts, idle_from_s, read)

    def _plan_beside(
        self, what: str, share: float, starts: list[float], idle_from_s: float, make: Callable[[Random, str], Request]
    ) -> None:
        """Other requests beside those for programs, as a share of them."""
        plan, rng = self._plan, Random(f"{what}s {self._plan.seed}")
        for number in range(plan.requests):
            if rng.random() >= share:
                continue
            request = make(rng, str(number))
            at_s = rng.choice(starts) + rng.random() * 0.01
            if rng.random() < plan.repeats:
                request = replace(request, idempotency_key=f"{what} {number}")
                again = replace(request, request_id=f"{request.request_id} again")
                self._plan_send(at_s + rng.random() * rng.choice([0.01, 1.0]), idle_from_s, again)
            self._plan_send(at_s, idle_from_s, request)

    def _plan_send(self, at_s: float, idle_from_s: float, request: Request) -> None:
        if at_s > idle_from_s:
            at_s += IDLE_HOUR_S
        self.end_s = max(self.end_s, at_s)
        self.expected += 1
        self._world.time.after(at_s, self._send, request)

    def _send(self, request: Request) -> None:
        world = self._world
        try:
            slot = resolve_request(world.app, request, world.limits, self._plan.slots).slot
        except InTransactionError:
            slot = 0
        self.sent[request.request_id] = (request, world.log.timestamp_us)
        world.log.append_now(Stream.REQUESTS, slot, encode_request(request))
        world.time.after(world.rng.random() * 0.002, world.feed, slot)


def _external_step(rng: Random) -> list[Any]:
    return ["outside", rng.randrange(100)]


def _hidden_error_step(rng: Random) -> list[Any]:
    """Depending on the state, an error of the engine's that the function hides, and then a call that may fail as well:
    it may be that only the lock phase meets them, each on its slot.
    """
    hidden = ["if", rng.randint(1, 5), [["poison", "swallowed"]], []]
    failing = [["read"], ["if", rng.randint(1, 5), [["raise"]], [["mix", 1]]]]
    called = ["call", "sync", ["at", rng.randrange(3), rng.randrange(2)], failing]
    return ["if", 7, [["read"], hidden, called], []]


def _spinning_step(rng: Random) -> list[Any]:
    """Too long, always or depending on the state: it may be that only the lock phase meets it, or a branch that another
    one writes for.
    """
    spin = ["spin", rng.choice(["endless", "endless", "slow", "hidden"])]
    if rng.random() < 0.2:
        return spin
    return ["if", 7, [["read"], ["if", rng.randint(1, 5), [spin], []]], []]


def _with_step(request: Request, rng: Random, step: Callable[[Random], list[Any]]) -> Request:
    """The request with such steps in some of its blocks."""
    if request.function != "run":
        return request
    try:
        arguments = msgspec.msgpack.decode(request.params)
    except msgspec.DecodeError:
        return request
    if isinstance(arguments, list) and arguments and isinstance(arguments[0], list):
        _insert(arguments[0], rng, step)
    return replace(request, params=msgspec.msgpack.encode(arguments))


def _insert(block: list[Any], rng: Random, step: Callable[[Random], list[Any]]) -> None:
    inner = [inner[-1] for inner in block if isinstance(inner, list) and inner and inner[0] in _CALLS]
    if inner and rng.random() < 0.7:
        _insert(rng.choice(inner), rng, step)
    if not inner or rng.random() < 0.4:
        block.insert(rng.randint(0, len(block)), step(rng))
