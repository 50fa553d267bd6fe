"""A bank: accounts with a balance, and transfers between them that either happen or do not.

Run it with `styx dev examples.bank:app`, then:

    styx call account alice open 100
    styx call account bob open 0
    styx call account alice transfer '"bob"' 30
"""

from styx import App, Context, Operator

account = Operator("account", n_partitions=4)


class InsufficientFunds(Exception): ...


@account.register
async def open(ctx: Context, balance: int) -> None:
    await ctx.put({"balance": balance})


@account.register
async def credit(ctx: Context, amount: int) -> int:
    state = await ctx.get()
    if state is None:
        raise KeyError(f"no account {ctx.key}")
    state["balance"] += amount
    await ctx.put(state)
    return state["balance"]


@account.register
async def transfer(ctx: Context, to: str, amount: int) -> int:
    state = await ctx.get()
    if state is None or state["balance"] < amount:
        raise InsufficientFunds(f"{ctx.key} cannot pay {amount}")
    state["balance"] -= amount
    await ctx.put(state)
    ctx.call_async(operator=account, function_name="credit", key=to, params=(amount,))
    return state["balance"]


app = App("bank", operators=[account])
