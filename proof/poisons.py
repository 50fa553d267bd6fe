"""Steps of programs that misbehave, as a careless or hostile author writes them; each ends its transaction only.

They are steps of `proof.chaos_app`: ["poison", kind].
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from proof.chaos_app import Program


async def _exit(program: Program) -> None:
    raise SystemExit(3)


async def _interrupt(program: Program) -> None:
    raise KeyboardInterrupt


async def _cancel(program: Program) -> None:
    raise asyncio.CancelledError


async def _stop_iteration(program: Program) -> None:
    raise StopIteration


async def _foreign_await(program: Program) -> None:
    await asyncio.sleep(0)


async def _unencodable_state(program: Program) -> None:
    await program.ctx.put(object())


async def _swallowed(program: Program) -> None:
    """Hides the engine's refusal of a write; the transaction must end nevertheless."""
    try:
        await program.ctx.put({1, 2})
    except Exception:  # noqa: BLE001 - what a careless author writes
        program.register = -2


async def _unencodable_result(program: Program) -> None:
    program.register = object()  # type: ignore[assignment]


async def _unknown_operator(program: Program) -> None:
    await program.ctx.call("txet", "run", "k0", ([],))


async def _unknown_function(program: Program) -> None:
    program.ctx.call_async("text", "rum", "k0", ([],))


async def _bad_key(program: Program) -> None:
    program.ctx.call_async("number", "run", "k0", ([],))


async def _bad_arguments(program: Program) -> None:
    program.ctx.call_async("text", "run", "k0", ("not a program",))


POISONS: Final[Mapping[str, Callable[[Program], Awaitable[None]]]] = {
    "exit": _exit,
    "interrupt": _interrupt,
    "cancel": _cancel,
    "stop_iteration": _stop_iteration,
    "foreign_await": _foreign_await,
    "unencodable_state": _unencodable_state,
    "unencodable_result": _unencodable_result,
    "swallowed": _swallowed,
    "unknown_operator": _unknown_operator,
    "unknown_function": _unknown_function,
    "bad_key": _bad_key,
    "bad_arguments": _bad_arguments,
}
"""What ["poison", kind] does; each ends its transaction and nothing else."""
