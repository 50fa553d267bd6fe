"""Steps that give calls for later, for the programs of `proof.chaos_app`, and random ones.

["later", ms, n, target, p]     gives a call of program p, after `ms` milliseconds (below 0: after the commit), under
                                name number n (below 0: without a name)
["cancel", n]                   withdraws the call of that name; register = whether there was one
"""

from __future__ import annotations

from datetime import timedelta
from random import Random
from typing import Any, Final

from styx.model.agenda import Retry
from styx.model.context import Context

NAMES: Final = 2
PAUSE: Final = timedelta(milliseconds=3)


def give(ctx: Context, ms: int, n: int, operator: str, key: Any, steps: list[Any]) -> None:
    """Gives a call of a program, which is tried twice at most."""
    params, retry = (steps, [ctx.operator, ctx.key]), Retry(1 + len(steps) % 2, PAUSE)
    if ms < 0:
        ctx.after_commit(operator, "run", key, params, retry=retry)
    else:
        name = None if n < 0 else f"t{n}"
        ctx.after(timedelta(milliseconds=ms), operator, "run", key, params, name=name, retry=retry)


def later_step(rng: Random) -> list[Any]:
    """A step that gives a call, or withdraws one."""
    if rng.random() < 0.15:
        return ["cancel", rng.randrange(NAMES)]
    steps: list[Any] = [rng.choice([["mix", rng.randrange(100)], ["add", 1], ["now"], ["next", 0], ["unique"]])]
    steps += rng.choice([[], [], [["raise"]], [["guard", 500_000]], [["outside", rng.randrange(100)]]])
    if rng.random() < 0.2:
        steps.append(["later", rng.choice([-1, 0, 5]), -1, ["at", rng.randrange(3), rng.randrange(4)], [["mix", 1]]])
    if rng.random() < 0.15:
        steps.append(["cancel", rng.randrange(NAMES)])
    target = rng.choice([["self"], ["at", rng.randrange(3), rng.randrange(4)], ["by", rng.randrange(3), 4]])
    name = rng.randrange(NAMES) if rng.random() < 0.4 else -1
    return ["later", rng.choice([-1, -1, 0, 1, 20, 300]), name, target, steps]
