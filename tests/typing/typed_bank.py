"""An app with the types of its keys and states, and one mistake on each line that ends in `# wrong`."""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal

import msgspec

import styx
from styx import App, Context, Event, Graph, Operator, PartitionContext, Tumbling


class Account(msgspec.Struct):
    balance: Decimal
    owner: str


class Receipt(msgspec.Struct):
    total: Decimal


account = Operator("account", state_type=Account)
number = Operator("number", key_type=int)
seat = Operator("seat", key_type=(int, str), state_type=list[int])
AccountContext = Context[str, Account]


@account.register
async def open(ctx: AccountContext, balance: Decimal, owner: str = "") -> Receipt:
    await ctx.put(Account(balance, owner))
    await ctx.put({"balance": balance})  # wrong
    await ctx.put(balance)  # wrong
    return Receipt(balance)


@account.register
async def credit(ctx: AccountContext, amount: Decimal) -> Decimal:
    state = await ctx.get()
    if state is None:
        raise KeyError(ctx.key.upper())
    state.balance += amount
    state.blance += amount  # wrong
    await ctx.put(state)
    return state.balance


@account.register
async def careless(ctx: AccountContext) -> Decimal:
    state = await ctx.get()
    return state.balance  # wrong


@account.register
async def transfer(ctx: AccountContext, to: str, amount: Decimal) -> Decimal:
    own = await ctx.get(Account(Decimal(0), ""))
    own.balance -= amount
    await ctx.put(own)
    ctx.call_async(account, credit, to, (amount,))
    ctx.call_async(account, credit, 5, (amount,))  # wrong
    await ctx.call(account, credit, 5, (amount,))  # wrong
    text: str = await ctx.call(account, credit, to, (amount,))  # wrong
    ctx.at(account, to).call_async(credit, amount)
    ctx.at(account[to]).call_async(credit, amount)
    ctx.at(account, 5).call_async(credit, amount)  # wrong
    ctx.at(account, to).call_async(credit, "5")  # wrong
    wrong: int = await ctx.at(account["bob"]).call(open, amount)  # wrong
    await ctx.at(account["bob"]).call(open, amount, nobody="x")  # wrong
    right: Decimal = await ctx.at(account[to]).call(credit, amount=amount)
    return right if text and wrong else own.balance


@seat.register
async def take(ctx: Context[tuple[int, str], list[int]], by: int) -> int:
    row, letter = ctx.key
    taken = await ctx.get([])
    await ctx.put([*taken, by, row])
    await ctx.put([letter])  # wrong
    return len(taken)


@number.register
async def plain(ctx: Context, step: int) -> int:
    state = await ctx.get()
    state["count"] += step
    await ctx.put(state)
    return int(await ctx.get(0)) + int(ctx.key)


@account.register  # wrong
async def of_another(ctx: Context[int, Receipt]) -> None:
    await ctx.put(Receipt(Decimal(ctx.key)))


@account.cron("0 3 * * *", key="bank")
async def nightly(ctx: Context[str, Account]) -> None:
    await ctx.put(Account(Decimal(0), ctx.key))


@account.cron("0 3 * * *", key=7)  # wrong
async def hourly(ctx: Context[str, Account]) -> None: ...


@account.register
async def bill(ctx: Context[str, Account]) -> str:
    bills = ctx.sequence("bills")
    number: int = await bills.next()
    await bills.restart(after=number)
    await bills.restart("1")  # wrong
    bills.next().bit_length()  # wrong
    ctx.sequence(5)  # wrong
    return f"{ctx.unique_id()}-{await bills.last()}"


@account.register(read_only=True)
async def balance(ctx: AccountContext, at_least: Decimal) -> Decimal:
    state = await ctx.get()
    return max(state.balance, at_least) if state else state  # wrong


@account.register(read_only=True)  # wrong
async def read_another(ctx: Context[int, Receipt]) -> None:
    await ctx.get()


@account.register(readonly=True)  # wrong
async def misspelt(ctx: AccountContext) -> None:
    await ctx.get()


class Movement(msgspec.Struct):
    number: int
    amount: Decimal


movements = account.table("movements", Movement, key="number", indexes=styx.Index("by_amount", order="amount"))
account.table("none", Movement, key="number", auto="always")  # wrong
account.table("nothing", Movement)  # wrong


@account.register
async def move(ctx: AccountContext) -> styx.Page[Movement]:
    rows = ctx.rows(movements)
    first: Movement = await rows.insert(Movement(1, Decimal(1)), on_conflict="keep")
    await rows.insert(Receipt(Decimal(1)))  # wrong
    await rows.insert(first, on_conflict="skip")  # wrong
    found = await rows.get(1)
    found.amount.normalize()  # wrong
    kept: Movement = await rows.get(1, first)
    await rows.put(kept)
    dear = await rows.select(amount=styx.at_least(Decimal(1)), last=1)
    print(dear[0].amont)  # wrong
    number: int = await rows.count(amount=dear[0].amount)
    await rows.select(first=number)
    await rows.select(first="1")  # wrong
    ctx.rows("movements")  # wrong
    return await rows.pages(size=5)


days = Tumbling("number", timedelta(days=1))
moved = movements.view("moved", group_by="number", max="amount")
together = movements.view("together", group_by=("number", days), scope="partition")
movements.view("wrong", group_by=7)  # wrong
movements.view("wrong", scope="cluster")  # wrong


@account.register
async def most(ctx: AccountContext) -> int:
    found: int = (await ctx.rows(moved).get(1)).count
    return found


@account.register_partition
async def of_all(ctx: PartitionContext) -> int:
    await ctx.rows(movements).get(1)  # wrong
    found: int = (await ctx.rows(together).get((1, 2))).count
    return found


paid: Event[Decimal] = Event("paid", Decimal)


@account.on(paid, key=lambda amount: f"{amount}")
@seat.on(paid, key=lambda amount: (int(amount), "A"), after_commit=True, ordered_by=lambda amount: int(amount) % 7)
async def handle(ctx: AccountContext, amount: Decimal) -> None: ...


@account.on(paid, key=lambda amount: int(amount) % 7)  # wrong
async def handle_at_a_number(ctx: AccountContext, amount: Decimal) -> None: ...


@account.on(paid)  # wrong
async def handle_a_text(ctx: AccountContext, amount: str) -> None: ...


graph = Graph("credits", start=account.credit).edge(account.credit, account.balance).terminal(account.balance)
app = App("bank", operators=[account, number, seat], events=[paid], graphs=[graph])


async def use() -> None:
    async with styx.embedded(app) as client:
        receipt = await client.call(account, "alice", open, Decimal(100))
        total: Decimal = receipt.total
        print(receipt.totl)  # wrong
        await client.call(account, 5, open, Decimal(100))  # wrong
        await client.call(account, "alice", open, 100)  # wrong
        await client.call(account, "alice", open)  # wrong
        await client.call(account, "alice", open, Decimal(1), timeout=5)
        await client.call("account", "alice", "open", 100)
        await client.at(account, "alice", idempotency_key="k").call(credit, total)
        await client.at(account["alice"]).call(credit, amount=total)
        await client.at(account["alice"]).call(credit, 1)  # wrong
        await client.call(account, "alice", balance, Decimal(1))
        await client.call(account, "alice", balance, 1)  # wrong
        await client.call(seat, (7, "A"), take, 1)
        await client.call(seat, ("A", 7), take, 1)  # wrong
    with styx.connect_sync("http://127.0.0.1:8080") as blocking:
        blocking.call(account, "alice", open, Decimal(1))
        blocking.call(account, "alice", open, "1")  # wrong
        blocking.at(account["alice"]).call(credit, Decimal(1)).to_integral()
    try:
        styx.embeded_sync(app)  # wrong
    except styx.errors.ConfigurationError as refused:
        print(refused)
