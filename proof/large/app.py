"""The app of the large transactions: its functions store, send, read and write as many bytes as a request says."""

from __future__ import annotations

from styx import App, Context, Operator

holder = Operator("holder")


@holder.register
async def hold(ctx: Context, size: int) -> int:
    """Stores `size` bytes in the entity."""
    await ctx.put("x" * size)
    return size


@holder.register
async def give(ctx: Context) -> str:
    """Returns the entity's value."""
    held: str = await ctx.get("")
    return held


@holder.register
async def take(ctx: Context, held: str) -> None:
    """Stores the length of the given text."""
    await ctx.put(len(held))


@holder.register
async def count(ctx: Context) -> int:
    """Adds one."""
    number: int = await ctx.get(0) + 1
    await ctx.put(number)
    return number


@holder.register
async def spread(ctx: Context, calls: int, size: int) -> int:
    """Sends `size` bytes to each of `calls` other entities."""
    for number in range(calls):
        ctx.call_async(holder, take, f"{ctx.key}-{number}", ("x" * size,))
    return calls


@holder.register
async def read(ctx: Context, other: str) -> int:
    """The length of what another entity holds."""
    held = await ctx.call(holder, give, other)
    return len(held)


@holder.register
async def answer(ctx: Context, size: int) -> str:
    """Returns `size` characters."""
    return "x" * size


@holder.register
async def outside(ctx: Context, size: int) -> int:
    """Sends `size` characters to an external function, and gets as many back."""
    back: str = await ctx.call_external(echo, "x" * size)
    await ctx.put(len(back))
    return len(back)


@holder.register
async def write(ctx: Context, puts: int) -> int:
    """Writes `puts` values, each over the one before."""
    for number in range(puts):
        await ctx.put(number)
    return puts


def echo(text: str) -> str:
    """An external function."""
    return text


app = App("large", operators=[holder])
