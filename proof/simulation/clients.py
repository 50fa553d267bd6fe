"""Simulated clients: random requests appended to the log in bursts, some of them again with the same idempotency
key.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

import msgspec
from msgspec.structs import replace

from proof.emit_steps import emit_step
from proof.later_steps import later_step
from proof.life_steps import life_step
from proof.odd_calls import CALLS, arguments_of, with_odd_calls
from proof.random_links import random_links
from proof.random_looks import looking_step, random_look
from proof.random_requests import random_load, random_near, random_read, random_request
from proof.random_rows import random_row_look, random_rows, row_step
from proof.random_sweeps import random_survey, random_sweep
from proof.simulation.plan import SimulationPlan
from proof.simulation.world import World
from proof.travelling_requests import random_travel
from styx.errors import InTransactionError
from styx.log.base import Stream
from styx.messages import Request, encode_request
from styx.model.execution import resolve_request


class Clients:
    """`sent` maps request ids to the request and its time in the log, in microseconds; `answered` to the last epoch of
    which a reply was there by then. `expected` counts replies.
    """

    def __init__(self, world: World, plan: SimulationPlan) -> None:
        self.sent: dict[str, tuple[Request, int]] = {}
        self.answered: dict[str, int] = {}
        self.expected = 0
        self.end_s = 0.0
        self._world = world
        self._plan = plan
        self._travels = Random(f"travels {plan.seed}")
        self._externals = Random(f"outside calls {plan.seed}")
        self._hidden = Random(f"hidden errors {plan.seed}")
        self._spins = Random(f"spins of {plan.seed}")
        self._numbers = Random(f"numbers of {plan.seed}")
        self._looks = Random(f"looks within {plan.seed}")
        self._rows = Random(f"rows within {plan.seed}")
        self._odd = Random(f"odd calls {plan.seed}")
        rng = Random(f"clients {plan.seed}")
        starts = sorted(rng.random() * plan.duration_s for _ in range(plan.bursts))
        idle_from_s = min((f.at_s for f in plan.faults if f.kind == "idle hour"), default=float("inf"))
        for number in range(plan.requests):
            request = random_request(rng, plan.profile, f"r{number}")
            if self._travels.random() < plan.travels:
                request = random_travel(self._travels, plan.profile, f"r{number}")
            request = self._with_steps(request, self._externals, self._hidden, self._spins, self._numbers)
            if self._looks.random() < plan.looks:
                request = _with_step(request, self._looks, lambda rng: looking_step(rng, plan.profile))
            if self._rows.random() < plan.rows / 2:
                request = _with_step(request, self._rows, row_step)
            if self._odd.random() < plan.odd:
                request = with_odd_calls(request, self._odd)
            if request.function == "run" and Random(f"contended {number} {plan.seed}").random() < plan.contended:
                request = replace(request, function="hot")
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
        near = lambda rng, number: self._near(random_near(rng, plan.profile, plan.slots, f"n{number}"))  # noqa: E731
        self._plan_beside("local", plan.locals, starts, idle_from_s, near)
        self._plan_beside("read", plan.reads, starts, idle_from_s, read)
        self._plan_beside("look", plan.looks, starts, idle_from_s, self._look)
        rows = lambda rng, number: self._near(random_rows(rng, f"w{number}"))  # noqa: E731 - it fits a line
        self._plan_beside("sweep", plan.sweeps, starts, idle_from_s, self._sweep)
        survey = lambda rng, number: random_survey(rng, f"s{number}")  # noqa: E731 - it fits a line
        self._plan_beside("survey", plan.sweeps / 2, starts, idle_from_s, survey)
        self._plan_beside("row", plan.rows, starts, idle_from_s, rows)
        links = lambda rng, number: random_links(rng, f"k{number}")  # noqa: E731 - it fits a line
        self._plan_beside("link", plan.links, starts, idle_from_s, links)
        seen = lambda rng, number: random_row_look(rng, f"v{number}")  # noqa: E731
        self._plan_beside("row look", plan.rows / 2, starts, idle_from_s, seen)

    def _look(self, rng: Random, number: str) -> Request:
        request = random_look(rng, self._plan.profile, f"o{number}")
        if rng.random() < self._plan.externals:
            request = _with_step(request, rng, _external_step)
        if rng.random() < self._plan.hidden_errors:
            request = _with_step(request, rng, _hidden_error_step)
        return _with_step(request, rng, _spinning_step) if rng.random() < self._plan.spins else request

    def _sweep(self, rng: Random, number: str) -> Request:
        return random_sweep(rng, f"p{number}", [_spinning_step(rng)] if rng.random() < self._plan.spins else None)

    def _with_steps(
        self, request: Request, externals: Random, hidden: Random, spins: Random, numbers: Random
    ) -> Request:
        plan = self._plan
        if externals.random() < plan.externals:
            request = _with_step(request, externals, _external_step)
        if hidden.random() < plan.hidden_errors:
            request = _with_step(request, hidden, _hidden_error_step)
        if spins.random() < plan.spins:
            request = _with_step(request, spins, _spinning_step)
        if numbers.random() < plan.sequences:
            request = _with_step(request, numbers, _sequence_step)
        laters = Random(f"laters of {request.request_id} {plan.seed}")
        if laters.random() < plan.laters:
            request = _with_step(request, laters, later_step)
        emits = Random(f"emits of {request.request_id} {plan.seed}")
        if emits.random() < plan.emits:
            request = _with_step(request, emits, emit_step)
        lives = Random(f"lives of {request.request_id} {plan.seed}")
        return _with_step(request, lives, life_step) if lives.random() < plan.lives else request

    def _near(self, request: Request) -> Request:
        """A local request, with steps from generators of its own."""
        rng = Random(f"steps of {request.request_id} {self._plan.seed}")
        request = self._with_steps(request, rng, rng, rng, rng)
        return with_odd_calls(request, rng) if rng.random() < self._plan.odd else request

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
            at_s += self._plan.idle_s
        self.end_s = max(self.end_s, at_s)
        self.expected += 1
        self._world.time.after(at_s, self._send, request)

    def send(self, request: Request) -> None:
        """A request that nobody has planned comes now."""
        self.expected += 1
        self._send(request)

    def _send(self, request: Request) -> None:
        world = self._world
        try:
            slot = resolve_request(world.app, request, world.limits, self._plan.slots).slot
        except InTransactionError:
            slot = 0
        self.sent[request.request_id] = (request, world.log.timestamp_us)
        self.answered[request.request_id] = world.log.answered
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


def _sequence_step(rng: Random) -> list[Any]:
    """A number of one of the entity's two sequences, more often than not one that decides whom to call; or an id."""
    n = rng.randrange(2)
    kind = rng.choice(["travels", "travels", "next", "next", "next", "last", "restart", "unique"])
    if kind == "travels":
        called = ["call", rng.choice(["sync", "async"]), ["by", rng.randrange(3), 4], [["next", n], ["mix", 3]]]
        return ["if", 7, [["next", n], called], []]
    if kind == "restart":
        return [kind, n, rng.choice([0, 0, 5, 300])]
    return [kind] if kind == "unique" else [kind, n]


def _with_step(request: Request, rng: Random, step: Callable[[Random], list[Any]]) -> Request:
    """The request with such steps in some of its blocks."""
    arguments = arguments_of(request)
    if arguments is None or not isinstance(arguments[0], list):
        return request
    _insert(arguments[0], rng, step)
    return replace(request, params=msgspec.msgpack.encode(arguments))


def _insert(block: list[Any], rng: Random, step: Callable[[Random], list[Any]]) -> None:
    inner = [inner[-1] for inner in block if isinstance(inner, list) and inner and inner[0] in CALLS]
    if inner and rng.random() < 0.7:
        _insert(rng.choice(inner), rng, step)
    if not inner or rng.random() < 0.4:
        block.insert(rng.randint(0, len(block)), step(rng))
