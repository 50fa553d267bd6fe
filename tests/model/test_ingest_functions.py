"""What an ingest's entity does: records are taken once, in order, each by itself, whatever is sent to it."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

import styx
from styx import App, Operator
from styx.errors import RequestRejected, TransactionAborted
from styx.model import ingest_functions, ingest_position
from styx.model.ingest_position import BUSY, ELSEWHERE, TAKEN, Batch
from styx.testing import embedded_cluster
from styx.testing.fixture import EmbeddedCluster
from tests.model.ingest_app import TOPIC, batch, made_app, pay, raw

pytestmark = pytest.mark.anyio
KEY = (TOPIC, 0)
HOUR = timedelta(hours=1)


async def told(cluster: EmbeddedCluster, function: str, *args: Any) -> Any:
    return await cluster.call("payments", KEY, function, *args)


async def taken(cluster: EmbeddedCluster, one: Batch) -> tuple[str, int]:
    what, position = await told(cluster, "take", one)
    return what, position["next"]


async def paid(cluster: EmbeddedCluster, account: str = "ada") -> Any:
    await cluster.advance(HOUR)
    return cluster.entity("account", account)


async def test_records_are_taken_in_order() -> None:
    app, _ = made_app()
    async with embedded_cluster(app) as cluster:
        assert (await told(cluster, "begin", "t1", 40))["next"] == 40
        for begin in range(40, 100, 20):
            values = [pay("ada", offset) for offset in range(begin, begin + 20)]
            assert await taken(cluster, batch(begin, *values)) == (TAKEN, begin + 20)
        assert await paid(cluster) == list(range(40, 100))
        position, aside, left_out = await told(cluster, "position")
        assert (position["taken"], position["settled"], aside, left_out) == (60, 60, 0, 0)


async def test_a_batch_that_comes_again_is_harmless() -> None:
    app, _ = made_app()
    async with embedded_cluster(app) as cluster:
        await told(cluster, "begin", "t1", 0)
        first = batch(0, pay("ada", 0), pay("ada", 1))
        for _ in range(3):
            assert await taken(cluster, first) == (TAKEN, 2)
        assert await taken(cluster, batch(1, pay("ada", 1), pay("ada", 2))) == (TAKEN, 3), "an overlapping one"
        assert await taken(cluster, first) == (TAKEN, 3)
        assert await paid(cluster) == [0, 1, 2]


async def test_a_batch_that_does_not_continue_is_refused() -> None:
    app, _ = made_app()
    async with embedded_cluster(app) as cluster:
        assert await taken(cluster, batch(0, pay("ada", 0))) == (ELSEWHERE, 0), "before the beginning"
        await told(cluster, "begin", "t1", 0)
        assert await taken(cluster, batch(1, pay("ada", 1))) == (ELSEWHERE, 0), "a gap"
        assert await taken(cluster, batch(0, pay("ada", 0), topic_id="t2")) == (ELSEWHERE, 0), "another topic"
        assert await paid(cluster) is None


async def test_gaps_between_records_are_no_gaps_of_a_batch() -> None:
    app, _ = made_app()
    async with embedded_cluster(app) as cluster:
        await told(cluster, "begin", "t1", 0)
        compacted = Batch("t1", 0, 10, [raw(3, pay("ada", 3)), raw(9, pay("ada", 9))])
        assert await taken(cluster, compacted) == (TAKEN, 10)
        assert await paid(cluster) == [3, 9]


async def test_a_partition_begins_once() -> None:
    app, _ = made_app()
    async with embedded_cluster(app) as cluster:
        await told(cluster, "begin", "t1", 7)
        assert (await told(cluster, "begin", "t1", 9))["next"] == 7
        assert (await told(cluster, "begin", "t2", 0))["topic_id"] == "t1"


async def test_a_bad_record_costs_itself() -> None:
    app, _ = made_app()
    async with embedded_cluster(app) as cluster:
        await told(cluster, "begin", "t1", 0)
        await taken(cluster, batch(0, pay("ada", 0), b"{", pay("ada", 2), None, pay("ada", -1), pay("ada", 5)))
        assert await paid(cluster) == [0, 2, 5]
        assert (await told(cluster, "position"))[1] == 2, "what cannot be decoded; an abort of the app is none of them"
        assert cluster.engine.reports.dead_calls.by_function == {"payments.record": 3}


async def test_what_one_version_has_refused_no_other_takes_by_itself() -> None:
    """Later records may have gone by."""
    app, _ = made_app()
    async with embedded_cluster(app) as cluster:
        await told(cluster, "begin", "t1", 0)
        await taken(cluster, batch(0, pay("ada", 0)))
        with pytest.raises(TransactionAborted, match="BadRecord: it was no payment"):
            await told(cluster, "record", raw(1, pay("ada", 1)), "it was no payment")
        assert await paid(cluster) == [0]


async def test_a_record_that_is_tried_again_is_decoded_by_the_version_that_runs(tmp_path: Path) -> None:
    app, _ = made_app(where=lambda record: bool(record.value.account[9]))
    async with styx.embedded(app, tmp_path) as client:
        await client.call("payments", KEY, "begin", "t1", 0)
        await client.call("payments", KEY, "take", batch(0, pay("ada", 0)))
        await client.engine.settled(10)
        [dead] = (await client.dead_calls("payments")).calls
        assert await client.replay_dead_call("payments", dead.id)
        await client.engine.settled(10)
        [dead] = (await client.dead_calls("payments")).calls
        assert "where= of ingest" in dead.error_message
        assert (await client.call("payments", KEY, "position"))[1] == 1, "it was set aside once"
    async with styx.embedded(made_app()[0], tmp_path) as client:
        assert await client.replay_dead_call("payments", dead.id)
        await client.engine.settled(10)
        assert client.state()["account", "ada"] == [0]
        assert not (await client.dead_calls("payments")).calls


async def test_what_where_leaves_out_is_counted() -> None:
    app, _ = made_app(where=lambda record: record.value.amount % 2)
    async with embedded_cluster(app) as cluster:
        await told(cluster, "begin", "t1", 0)
        await taken(cluster, batch(0, *(pay("ada", number) for number in range(5))))
        assert await paid(cluster) == [1, 3]
        assert (await told(cluster, "position"))[1:] == [0, 3]


async def test_nothing_is_taken_while_too_much_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ingest_functions, "WAITING_MAX", 0)
    app, _ = made_app()
    async with embedded_cluster(app) as cluster:
        await told(cluster, "begin", "t1", 0)
        assert await taken(cluster, batch(0, pay("ada", 0))) == (BUSY, 0)
        assert await paid(cluster) is None


async def test_there_is_room_again_when_records_are_handled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ingest_functions, "WAITING_MAX", 1)
    app, _ = made_app()
    async with embedded_cluster(app) as cluster:
        await told(cluster, "begin", "t1", 0)
        for begin in range(0, 30, 3):
            one = batch(begin, *(pay("ada", offset) for offset in range(begin, begin + 3)))
            while (await taken(cluster, one))[0] == BUSY:
                await cluster.advance(timedelta(0))
        assert await paid(cluster) == list(range(30))


async def test_what_was_deleted_is_counted() -> None:
    app, _ = made_app()
    async with embedded_cluster(app) as cluster:
        await told(cluster, "begin", "t1", 0)
        for first in (10, 10, 5):
            position = await told(cluster, "skip", "t1", first)
            assert (position["next"], position["lost"], position["gaps"]) == (10, 10, [[0, 10]])
        assert (await told(cluster, "skip", "t2", 20))["next"] == 10, "of another topic"
        assert await taken(cluster, batch(5, *[pay("ada", 1)] * 5)) == (TAKEN, 10), "and not taken later"
        assert await paid(cluster) is None


async def test_a_topic_that_was_made_anew_is_read_anew_once() -> None:
    app, _ = made_app()
    async with embedded_cluster(app) as cluster:
        await told(cluster, "begin", "t1", 0)
        await taken(cluster, batch(0, pay("ada", 0), pay("ada", 1)))
        assert (await told(cluster, "renew", "t2", 0))["next"] == 0
        assert await taken(cluster, batch(0, pay("ada", 7), topic_id="t2")) == (TAKEN, 1)
        stale = await told(cluster, "renew", "t1", 0)
        assert (stale["topic_id"], stale["next"]) == ("t1", 2), "who has seen it long ago takes nothing of it twice"
        assert await taken(cluster, batch(1, pay("ada", 8), topic_id="t2")) == (ELSEWHERE, 2)
        assert (await told(cluster, "renew", "t2", 0))["next"] == 1
        assert await taken(cluster, batch(2, pay("ada", 2), topic_id="t1")) == (ELSEWHERE, 1)
        assert await paid(cluster) == [0, 1, 7]


async def test_a_process_that_is_late_leads_to_a_topic_that_nobody_has_read_and_back() -> None:
    app, _ = made_app()
    async with embedded_cluster(app) as cluster:
        await told(cluster, "begin", "t1", 0)
        await told(cluster, "renew", "t3", 0)
        assert await taken(cluster, batch(0, pay("ada", 0), topic_id="t3")) == (TAKEN, 1)
        assert (await told(cluster, "renew", "t2", 0))["topic_id"] == "t2"
        assert (await told(cluster, "renew", "t3", 0))["next"] == 1, "it does not stay there for ever"
        assert await taken(cluster, batch(0, pay("ada", 0), pay("ada", 1), topic_id="t3")) == (TAKEN, 2)
        assert await paid(cluster) == [0, 1]


async def test_former_topics_are_remembered_in_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ingest_position, "FORMER_MAX", 3)
    position = ingest_position.Position(5, "t0", former=["told by an older version"])
    assert not position.renew("told by an older version", 0), "how far it was taken is not known"
    for number in range(1, 6):
        assert position.renew(f"t{number}", 0)
        position.next = number
    assert (position.former, position.reached) == (["t2", "t3", "t4"], [2, 3, 4])
    assert position.renew("t3", 0)
    assert (position.next, position.former, position.reached) == (3, ["t2", "t4", "t5"], [2, 4, 5])


async def test_brokers_that_begin_to_tell_the_id_of_a_topic_do_not_double_it() -> None:
    app, _ = made_app()
    async with embedded_cluster(app) as cluster:
        await told(cluster, "begin", "", 0)
        assert await taken(cluster, batch(0, pay("ada", 0), topic_id="")) == (TAKEN, 1)
        assert (await told(cluster, "begin", "t1", 0))["next"] == 1
        assert await taken(cluster, batch(1, pay("ada", 1), topic_id="")) == (ELSEWHERE, 1)
        assert await taken(cluster, batch(1, pay("ada", 1), topic_id="t1")) == (TAKEN, 2)
        # While brokers change their version one by one, some of them tell it and others do not.
        for function in ("begin", "renew"):
            position = await told(cluster, function, "", 0)
            assert (position["topic_id"], position["next"]) == ("t1", 2)
        assert (await told(cluster, "renew", "t2", 0))["next"] == 0
        assert await paid(cluster) == [0, 1]


async def test_a_topic_that_lost_its_end_goes_on_there() -> None:
    app, _ = made_app()
    async with embedded_cluster(app) as cluster:
        await told(cluster, "begin", "t1", 0)
        await taken(cluster, batch(0, *(pay("ada", number) for number in range(5))))
        assert (await told(cluster, "shorten", "t2", 3))["next"] == 5
        assert (await told(cluster, "shorten", "t1", 9))["next"] == 5
        assert (await told(cluster, "shorten", "t1", 3))["next"] == 3
        assert await taken(cluster, batch(3, pay("ada", 30))) == (TAKEN, 4)
        assert await paid(cluster) == [0, 1, 2, 3, 4, 30]


async def test_an_ingest_that_was_taken_out_for_a_version_goes_on(tmp_path: Path) -> None:
    app, _ = made_app()
    async with styx.embedded(app, tmp_path) as client:
        await client.call("payments", KEY, "begin", "t1", 0)
        await client.call("payments", KEY, "take", batch(0, pay("ada", 0)))
        await client.engine.settled(10)
    kept = [each for each in made_app()[0].operators.values() if each.name != "payments"]
    without = App(app.name, [*kept, Operator("payments", key_type=(str, int))], drops=["payments/counts"])
    async with styx.embedded(without, tmp_path) as client:
        assert client.state()["account", "ada"] == [0]
    async with styx.embedded(made_app()[0], tmp_path) as client:
        assert (await client.call("payments", KEY, "begin", "t1", 0))["next"] == 1
        await client.call("payments", KEY, "take", batch(1, b"bad", pay("ada", 2)))
        await client.engine.settled(10)
        assert (await client.call("payments", KEY, "position"))[1] == 1
        [dead] = (await client.dead_calls("payments")).calls
        assert (dead.error_type, client.state()["account", "ada"]) == ("BadRecord", [0, 2])


async def test_garbage_is_refused_and_changes_nothing() -> None:
    app, _ = made_app()
    async with embedded_cluster(app) as cluster:
        await told(cluster, "begin", "t1", 0)
        for arguments in ((), (7,), ("t1",), (["t1", 0, 1, [[0]]],), (["t1", 0, 1, [["0", 0, None, None]]],)):
            with pytest.raises(RequestRejected, match=r"payments\.take"):
                await told(cluster, "take", *arguments)
        assert (await told(cluster, "position"))[0]["next"] == 0


async def test_partitions_are_separate() -> None:
    app, _ = made_app()
    async with embedded_cluster(app) as cluster:
        for partition in range(3):
            await cluster.call("payments", (TOPIC, partition), "begin", "t1", 0)
            await cluster.call("payments", (TOPIC, partition), "take", batch(0, pay(f"a{partition}", partition)))
        assert [await paid(cluster, f"a{partition}") for partition in range(3)] == [[0], [1], [2]]


async def test_a_crash_takes_nothing_and_doubles_nothing(tmp_path: Path) -> None:
    app, _ = made_app()
    async with embedded_cluster(app, tmp_path / "data") as cluster:
        await told(cluster, "begin", "t1", 0)
        values = [pay("ada", number) for number in range(40)]
        for begin in range(0, 40, 10):
            await taken(cluster, batch(begin, *values[begin : begin + 10]))
            await cluster.crash_and_recover()
            await taken(cluster, batch(begin, *values[begin : begin + 10]))
        assert await paid(cluster) == list(range(40))
