"""Events of several workers: those of committed transactions, in serial order, whichever phase commits them."""

from __future__ import annotations

from styx import App, Context, Event, Operator
from styx.messages import EventRecord
from tests.protocol.deployment import Deployment

moved: Event[str] = Event("moved", str)
account = Operator("account", key_type=str)


@account.register
async def move(ctx: Context, other: str, name: str) -> None:
    value = await ctx.get(0)
    await ctx.put(value + 1)
    ctx.emit(moved, f"{name}{value}")
    ctx.call_async(account, take, other, (name,))
    if value >= 5:
        raise ValueError("five")


@account.register
async def take(ctx: Context, name: str) -> None:
    value = await ctx.get(0)
    await ctx.put(value + 1)
    ctx.emit(moved, f"{name}{value}")
    ctx.emit(moved, name, key="all")


@account.register(local=True)
async def count(ctx: Context, name: str) -> None:
    value = await ctx.get(0)
    await ctx.put(value + 1)
    ctx.emit(moved, f"{name}{value}")


app = App("accounts", [account], events=[moved])


def serial(events: list[EventRecord], key: str) -> list[str]:
    """The values of one key's events, in the order in which they left."""
    of_key = [event for event in events if event.key == key]
    assert of_key == sorted(of_key, key=lambda event: event.place)
    return [moved.decode(event.payload) for event in of_key]


def test_events_leave_in_serial_order_from_all_phases() -> None:
    deployment = Deployment(app, workers=2, slots=4)

    def send() -> None:
        for number in range(4):
            deployment.send("account", "a", "move", "b", f"{number}:")
            deployment.send("account", "b", "move", "a", f"{number}:")
        deployment.send("account", "a", "count", "local:")

    deployment.send_together(send)
    deployment.check()
    assert {event.phase for event in deployment.events} == {1, 2, 3}
    for key in "ab":
        numbers = [int(value.rpartition(":")[2]) for value in serial(deployment.events, key)]
        assert numbers == list(range(len(numbers)))
        assert len(numbers) > 4
    committed = [reply for reply in deployment.replies if reply.error is None]
    assert len(serial(deployment.events, "all")) == len(committed) - 1 < len(deployment.replies) - 1


def test_what_was_not_emitted_before_a_crash_is_emitted_by_the_replay() -> None:
    deployment = Deployment(app, workers=2, slots=4)
    deployment.send_together(lambda: deployment.send("account", "a", "move", "b", "x"))
    before = list(deployment.events)
    deployment.events.clear()
    deployment.restart()
    assert sorted(before, key=lambda event: event.id) == sorted(deployment.events, key=lambda event: event.id)


def test_marks_come_behind_the_events_of_their_epochs() -> None:
    deployment = Deployment(app, workers=2, slots=4)
    deployment.marks.clear()
    for round_ in range(3):
        now_s = 10.0 + round_
        deployment.send_together(lambda: deployment.send("account", "a", "move", "b", "x"))
        deployment.tick(now_s)
        deployment.run()
        [first, second] = deployment.marks
        assert first == second, "both workers mark the same epoch, behind the same events"
        assert first[0] == len(deployment.events)
        assert first[1] >= max(event.epoch for event in deployment.events)
        deployment.marks.clear()
        deployment.tick(now_s + 0.5)
        deployment.run()
        assert deployment.marks == [], "nothing was emitted since"
