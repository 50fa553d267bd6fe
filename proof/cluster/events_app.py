"""An app for trials of events on a real cluster: accounts that tell of each transfer, and number what they tell."""

from __future__ import annotations

import msgspec

from styx import App, Context, Event, Operator


class Moved(msgspec.Struct):
    """`number` counts the events of the account from 1; `name` is the transfer's."""

    account: int
    number: int
    name: str
    amount: int


moved: Event[Moved] = Event("account-moved", Moved)
settled: Event[str] = Event("settled", str, version=2)
account = Operator("account", key_type=int)


async def _tell(ctx: Context, name: str, amount: int) -> None:
    number: int = await ctx.get(0) + 1
    await ctx.put(number)
    ctx.emit(moved, Moved(ctx.key, number, name, amount))


@account.register
async def transfer(ctx: Context, to: int, name: str) -> None:
    """Both accounts tell of it, and the bank, under another key; every seventh transfer is refused behind that."""
    await _tell(ctx, name, -1)
    ctx.call_async(account, take, to, (name,))
    ctx.emit(settled, name, key=("bank", len(name) % 3))
    if int(name.rpartition("-")[2]) % 7 == 6:
        raise ValueError("refused")


@account.register
async def take(ctx: Context, name: str) -> None:
    """The other side."""
    await _tell(ctx, name, 1)


@account.register
async def told(ctx: Context) -> int:
    """How many events the account has emitted."""
    count: int = await ctx.get(0)
    return count


app = App("proof-events", [account], events=[moved, settled])
