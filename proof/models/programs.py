"""Programs that the models run as transactions: small trees of steps over entities, which are numbers under a key.

An invocation has a register, which begins as its argument, and returns it. What a program does depends on state and on
results: whom it calls, with which argument, whether it calls at all, and whether it raises. Programs have no loops, so
they end.
"""

from __future__ import annotations

from collections.abc import Generator
from random import Random
from typing import Any, Final, NamedTuple, TypeAlias

MODULUS: Final = 97
"""Numbers in registers and state stay below this."""

Step: TypeAlias = tuple[Any, ...]
Program: TypeAlias = tuple[Step, ...]


class Call(NamedTuple):
    """A call of the function that runs `program` on the entity `key`. `caller` is the calling entity."""

    key: int
    program: Program
    argument: int
    caller: int
    synchronous: bool


class Request(NamedTuple):
    """What a running program wants: to "get" or "put" `value`, or to make `call`. It is answered with a number."""

    kind: str
    value: int = 0
    call: Call | None = None


class Raised(Exception):
    """A program has raised an exception; the text is its message."""


def interpret(call: Call, n_keys: int) -> Generator[Request, int, int]:
    """Runs a program; the generator's return value is the invocation's result. Raises `Raised`.

    Steps:

        ("argument",)        register = the argument
        ("read",)            register = state
        ("add", n)           state += n; register = state
        ("mix", n)           state = f(state, register, n); register = state
        ("guard", n)         raises if state < n
        ("take", n)          raises if state < n; state -= n; register = state
        ("if", n, p, q)      p if register % 7 < n, else q
        ("call", mode, target, program)   calls with the register as the argument; mode is "sync", "async" or "either",
                             by the register; target: see `_target`
    """
    register = call.argument
    todo = list(reversed(call.program))
    while todo:
        verb, *operands = todo.pop()
        if verb == "if":
            todo.extend(reversed(operands[1 if register % 7 < operands[0] else 2]))
        elif verb == "argument":
            register = call.argument
        elif verb == "call":
            mode, target, program = operands
            synchronous = mode == "sync" or (mode == "either" and register % 2 == 0)
            made = Call(_target(call, register, target, n_keys), program, register, call.key, synchronous)
            answer = yield Request("call", 0, made)
            register = answer if synchronous else register
        else:
            value = yield Request("get")
            if verb in ("guard", "take") and value < operands[0]:
                raise Raised(f"{call.key} holds {value}, less than {operands[0]}")
            register = value if verb in ("read", "guard") else _changed(verb, value, register, operands[0])
            if verb in ("add", "mix", "take"):
                yield Request("put", register)
    return register


def _changed(verb: str, value: int, register: int, n: int) -> int:
    if verb == "take":
        return value - n
    return (value + n if verb == "add" else value * 3 + register * 5 + n) % MODULUS


def _target(call: Call, register: int, target: tuple[str, int], n_keys: int) -> int:
    kind, n = target
    if kind == "by":  # the data decide
        return (register + n) % n_keys
    if kind == "caller":
        return call.caller
    return n % n_keys


def random_program(rng: Random, n_keys: int, depth: int, raising: float) -> Program:
    """A program that calls at most `depth` levels deep; `raising` is the share of steps that may raise."""
    steps: list[Step] = []
    for _ in range(rng.randint(1, 3)):
        draw = rng.random()
        if depth and draw < 0.5:
            kind = rng.choice(("at", "at", "by", "by", "caller"))
            below = random_program(rng, n_keys, depth - 1, raising)
            mode = rng.choice(("sync", "sync", "async", "async", "either"))
            steps.append(("call", mode, (kind, rng.randrange(n_keys)), below))
        elif rng.random() < raising:
            steps.append((rng.choice(("guard", "take")), rng.randrange(1, 40)))
        elif depth and draw < 0.65:
            yes, no = (random_program(rng, n_keys, depth - 1, raising) for _ in range(2))
            steps.append(("if", rng.randrange(1, 7), yes, no))
        else:
            steps.append(
                rng.choice((("read",), ("argument",), ("add", rng.randrange(1, 9)), ("mix", rng.randrange(9))))
            )
    return tuple(steps)
