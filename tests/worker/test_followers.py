"""The changes of one worker's epochs: laid over the state at the beginning, they are the state at each epoch's end;
each epoch comes once, in order, and who is too late or too slow is told.
"""

from __future__ import annotations

from random import Random
from typing import Any

import msgspec
import pytest

from proof.chaos_app import app as chaos_app
from proof.random_requests import CONTENDED, MIXED, Profile
from styx.model.changes import FROM_NOW, EpochChanges, followed
from styx.model.limits import Limits
from styx.protocol.messages import Recover, Resume
from styx.sequencer.epoch_record import EpochPlan
from styx.state.slot_state import IDEMPOTENCY_TABLE, SlotState
from styx.worker import change_log, followers
from styx.worker.events import CoordinatorSaid, LoadedSlot, StateLoaded, Step
from styx.worker.followers import NOT_REACHED, Followed, FollowEnded, Followers
from styx.worker.reads import TOO_OLD, is_committing, last_closed
from styx.worker.worker import Worker
from tests.plain_form import plain_form
from tests.worker.test_read_exchange import KEYS, Pair
from tests.worker.test_reads import N_SLOTS, Stepping, placed, random_write

State = dict[tuple[int, str, Any], bytes]


class Follower:
    """Follows an engine's changes under `its_id`, and lays them over `state`."""

    def __init__(self, feed: Followers, its_id: Any, after: int = FROM_NOW, operator: str = "") -> None:
        self.feed = feed
        self.id = its_id
        self.began: int | None = None
        self.through = after
        self.epochs: list[EpochChanges] = []
        self.ended: FollowEnded | None = None
        feed.follow(its_id, operator, None, after)

    def take(self, given: Followed | FollowEnded) -> None:
        if isinstance(given, FollowEnded):
            self.ended = given
            return
        if self.began is None:
            assert not given.epochs
            self.began = self.through = given.through
            return
        assert given.through > self.through
        for epoch in given.epochs:
            assert self.through < epoch.epoch <= given.through
            self.through = epoch.epoch
            self.epochs.append(epoch)
        self.through = given.through
        if given.epochs:
            self.feed.taken(self.id, 1)

    def over(self, state: State, until: int, since: int = -1) -> State:
        """The state at the end of the epoch `until`, from that at the beginning, or at the end of `since`."""
        state = dict(state)
        for epoch in self.epochs:
            if since < epoch.epoch <= until:
                lay(epoch, state)
        return state


def lay(epoch: EpochChanges, state: State) -> None:
    """Lays an epoch's changes over a state: each of them changes something."""
    for table in epoch.tables:
        for key, value in zip(table.keys, table.values, strict=True):
            place = table.slot, table.name, key
            assert state.get(place) != value, "what is no change"
            if value is None:
                del state[place]
            else:
                state[place] = value


def state_of(engine: Stepping) -> State:
    """All that is committed by now, but for the remembered replies."""
    return {
        (slot.index, name, key): value
        for slot in engine.worker.slots.values()
        for name, table in slot.state.tables.items()
        if name != IDEMPOTENCY_TABLE
        for key, value in table.copied().items()
        if value is not None
    }


def run(feed: Followers, *who: Follower) -> None:
    by_id = {each.id: each for each in who}
    while feed.runnable:
        for given in feed.run():
            if given.id in by_id:
                by_id[given.id].take(given)


def write(engine: Stepping, rng: Random, number: int, profile: Profile = MIXED, n: int = 6) -> None:
    engine.run([placed(random_write(rng, profile, f"r{number}.{each}")) for each in range(n)])


@pytest.mark.parametrize("profile", [CONTENDED, MIXED])
@pytest.mark.parametrize("seed", range(4))
def test_changes_over_the_state_at_the_beginning_are_the_state_at_each_end(seed: int, profile: Profile) -> None:
    """Whatever step the worker is in when somebody begins to follow."""
    rng = Random(f"changes {seed} {profile.keys}")
    engine = Stepping(chaos_app)
    feed = Followers(engine.worker)
    states: dict[int, State] = {-1: {}}
    who: list[Follower] = []
    began_in: set[Step] = set()

    def look() -> None:
        worker = engine.worker
        if not is_committing(worker):
            states.setdefault(last_closed(worker), state_of(engine))
        if rng.random() < 0.05:
            began_in.add(worker.reached)
            who.append(Follower(feed, len(who)))
        if rng.random() < 0.5:
            for given in feed.run():
                who[given.id].take(given)

    engine.looks.append(look)
    for number in range(25):
        write(engine, rng, number, profile)
    run(feed, *who)
    last = engine.worker.epoch
    assert len(began_in) > 2, began_in
    for each in who:
        assert each.began is not None
        assert each.through == last
        known = [epoch for epoch in states if epoch >= each.began]
        for epoch in known:
            assert each.over(states[min(known)], epoch, min(known)) == states[epoch], (each.began, epoch)
    assert len(states) > 25


def test_following_costs_nothing_before_the_first_follower() -> None:
    engine = Stepping(chaos_app)
    write(engine, Random(1), 0)
    generation = engine.worker.generation_data
    assert generation.changes is None
    assert generation.versions.oldest is None


def test_earlier_epochs_are_given_as_far_as_versions_reach() -> None:
    """Reads keep versions, and a follower may begin where they do."""
    rng = Random("earlier")
    engine = Stepping(chaos_app)
    feed = Followers(engine.worker)
    states: dict[int, State] = {}
    for number in range(4):
        write(engine, rng, number)
    engine.worker.generation_data.keep_versions(begin := engine.worker.epoch)
    states[begin] = state_of(engine)
    for number in range(4, 8):
        write(engine, rng, number)
    early, late = Follower(feed, "early", begin), Follower(feed, "late", begin - 1)
    run(feed, early, late)
    assert early.ended is None
    assert early.over(states[begin], engine.worker.epoch) == state_of(engine)
    assert late.ended is not None
    assert late.ended.code == TOO_OLD
    assert f"kept from epoch {begin + 1} on" in late.ended.message
    assert feed.dropped == 1


def test_who_comes_back_goes_on_without_a_gap() -> None:
    rng = Random("back")
    engine = Stepping(chaos_app)
    feed = Followers(engine.worker)
    first = Follower(feed, 1)
    run(feed, first)
    start = state_of(engine)
    for number in range(3):
        write(engine, rng, number)
    run(feed, first)
    feed.leave(1)
    for number in range(3, 40):  # more epochs than versions are kept
        write(engine, rng, number)
    second = Follower(feed, 2, first.through)
    run(feed, second)
    assert second.ended is None
    assert second.epochs[0].epoch > first.epochs[-1].epoch
    assert second.over(first.over(start, first.through), engine.worker.epoch) == state_of(engine)


@plain_form
def test_the_log_ends_when_nobody_has_followed_for_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(change_log, "UNFOLLOWED_EPOCHS_MAX", 3)
    rng = Random("long")
    engine = Stepping(chaos_app)
    feed = Followers(engine.worker)
    run(feed, follower := Follower(feed, 1))
    for number in range(5):
        write(engine, rng, number)
    run(feed, follower)
    feed.leave(1)
    before = engine.worker.epoch
    while engine.worker.epoch <= before + 4:
        write(engine, rng, engine.worker.epoch)
    generation = engine.worker.generation_data
    assert generation.changes is None
    assert generation.versions.oldest is None
    run(feed, late := Follower(feed, 2, follower.through))
    assert late.ended is not None
    assert late.ended.code == TOO_OLD


@plain_form
def test_a_slow_follower_is_dropped_and_told_and_nobody_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(change_log, "LOG_BYTES_MAX", 20_000)
    monkeypatch.setattr(followers, "MESSAGE_BYTES", 1)
    rng = Random("slow")
    engine = Stepping(chaos_app)
    feed = Followers(engine.worker)
    slow, quick = Follower(feed, 1), Follower(feed, 2)
    run(feed, slow, quick)
    start = state_of(engine)
    for number in range(60):
        write(engine, rng, number)
        for _ in range(100):
            if not feed.runnable:
                break
            for given in feed.run():
                if given.id == 2:
                    quick.take(given)
                elif isinstance(given, FollowEnded):
                    slow.take(given)
    assert quick.over(start, engine.worker.epoch) == state_of(engine)
    assert slow.ended is not None
    assert slow.ended.code == TOO_OLD
    assert feed.dropped == 1
    assert feed.backlog_bytes <= 20_000


def test_a_follower_has_a_few_messages_that_it_has_not_taken() -> None:
    rng = Random("untaken")
    engine = Stepping(chaos_app)
    feed = Followers(engine.worker)
    feed.follow(1, "", None, FROM_NOW)
    given: list[Followed | FollowEnded] = []
    for number in range(60):
        write(engine, rng, number)
        given += feed.run()
    with_changes = [each for each in given if isinstance(each, Followed) and each.epochs]
    assert len(with_changes) == followers.UNTAKEN_MAX
    feed.taken(1, 1)
    assert feed.runnable
    [further] = feed.run()
    assert isinstance(further, Followed)
    assert further.through == engine.worker.epoch, "all that has come meanwhile"


def test_an_epoch_far_from_now_is_refused() -> None:
    """A deployment that was restored from a backup counts epochs again: its changes are others."""
    engine = Stepping(chaos_app)
    feed = Followers(engine.worker)
    write(engine, Random(3), 0)
    last = engine.worker.epoch
    near, far = Follower(feed, 1, last + 1), Follower(feed, 2, last + 2)
    run(feed, near, far)
    assert (near.ended, near.began) == (None, last + 1)
    assert far.ended is not None
    assert far.ended.code == NOT_REACHED


def test_only_what_belongs_to_the_operator_is_given() -> None:
    rng = Random("operator")
    engine = Stepping(chaos_app)
    feed = Followers(engine.worker)
    whole = Follower(feed, "whole")
    names = {name for name in chaos_app.operators if chaos_app.operator(name).tables}
    parts = [Follower(feed, name, operator=name) for name in sorted(names)]
    run(feed, whole, *parts)
    for number in range(20):
        write(engine, rng, number)
        run(feed, whole, *parts)
    assert parts
    for part in parts:
        wanted = [
            (epoch.epoch, table)
            for epoch in whole.epochs
            for table in epoch.tables
            if followed(chaos_app, part.id, None, table.name)
        ]
        assert [(epoch.epoch, table) for epoch in part.epochs for table in epoch.tables] == wanted
        assert {table.name for _, table in wanted} <= {part.id, *chaos_app.tables}
        assert part.through == whole.through


def test_too_many_are_refused() -> None:
    engine = Stepping(chaos_app, N_SLOTS, Limits())
    feed = Followers(engine.worker)
    for number in range(followers.FOLLOWERS_MAX):
        feed.follow(number, "", None, FROM_NOW)
    more = Follower(feed, "more")
    run(feed, more)
    assert more.ended is not None
    assert more.ended.code == "overloaded"
    feed.leave(0)
    run(feed, again := Follower(feed, "again"))
    assert again.ended is None


def test_a_generation_ends_what_followed_it_and_the_next_one_has_all_from_its_beginning_on() -> None:
    pair = Pair()
    feed = Followers(pair.workers[0])
    first = Follower(feed, 1)
    run(feed, first)
    pair.put(0, 5)
    pair.join(0)
    pair.close(0)
    run(feed, first)
    assert [epoch.epoch for epoch in first.epochs] == [0]
    pair.begin(2)
    pair.put(0, 5)
    pair.join(0)
    pair.close(0)  # the same epoch is run again
    run(feed, first)
    assert first.ended is not None
    assert first.ended.code == "unavailable"
    again, before = Follower(feed, 2, first.through), Follower(feed, 3, -1)
    run(feed, again, before)
    assert (again.epochs, again.through) == ([], 0)
    assert before.epochs == first.epochs


def test_a_follower_gets_what_its_generation_has_closed_before_it_is_told_to_ask_again() -> None:
    """A change of generations that was planned begins on a snapshot, and runs no epoch again."""
    pair = Pair()
    feed = Followers(pair.workers[0])
    slow = Follower(feed, 1)
    run(feed, slow)
    for epoch in range(3):
        pair.put(0, epoch)
        pair.join(epoch)
        pair.close(epoch)
    pair.begin(2)
    run(feed, slow)
    assert [epoch.epoch for epoch in slow.epochs] == [0, 1, 2]
    assert slow.through == 2
    assert slow.ended is not None
    assert slow.ended.code == "unavailable"
    assert len(feed) == 0


def test_who_does_not_take_what_a_generation_has_closed_asks_again_when_the_next_one_ends() -> None:
    pair = Pair()
    feed = Followers(pair.workers[0])
    feed.follow(1, "", None, FROM_NOW)
    for epoch in range(followers.UNTAKEN_MAX + 2):
        pair.put(0, epoch)
        pair.join(epoch)
        pair.close(epoch)
        feed.run()
    pair.begin(2)
    assert not any(isinstance(given, FollowEnded) for given in feed.run())
    pair.begin(3)
    [ended] = feed.run()
    assert isinstance(ended, FollowEnded)
    assert ended.code == "unavailable"


def test_who_follows_while_the_state_is_loaded_has_all_behind_it() -> None:
    pair = Pair()
    worker = pair.workers[0]
    worker.step(CoordinatorSaid(Recover(2, {0: 0, 1: 1}, None, {0: "a/1", 1: "b/1"})))
    assert worker.reached is Step.LOADING
    feed = Followers(worker)
    follower = Follower(feed, 1)
    assert not feed.runnable
    worker.step(StateLoaded(2, 40, 0, {0: LoadedSlot(SlotState(), 0, [])}, [], {}))
    run(feed, follower)
    assert follower.began == 40


def loading(pair: Pair, epoch: int, state: SlotState, *plans: EpochPlan) -> tuple[Worker, StateLoaded]:
    """A worker in a new generation, and the answer with the state that it waits for, at the end of `epoch`."""
    worker = pair.workers[0]
    pair.generation += 1
    worker.step(CoordinatorSaid(Recover(pair.generation, {0: 0, 1: 1}, None, {0: "a/1", 1: "b/1"})))
    return worker, StateLoaded(pair.generation, epoch, 0, {0: LoadedSlot(state, 0, [])}, list(plans), {})


def test_an_epoch_far_from_now_is_refused_although_the_worker_does_not_serve_yet() -> None:
    """Whoever followed a deployment that is restored comes back while that still begins."""
    pair = Pair()
    worker, loaded = loading(pair, 40, SlotState(), EpochPlan(epoch=41, counter=0, batches={}))
    feed = Followers(worker)
    near, far = Follower(feed, 1, 42), Follower(feed, 2, 43)
    worker.step(loaded)
    assert worker.reached is Step.LOADED
    run(feed, near, far)
    assert (near.ended, near.began) == (None, 42)
    assert far.ended is not None
    assert far.ended.code == NOT_REACHED
    assert "the last one is 41" in far.ended.message


def test_who_follows_while_nothing_is_loaded_begins_although_no_epoch_closes() -> None:
    """Another follower's end was the last that `run` had to say before that."""
    pair = Pair()
    feed = Followers(pair.workers[0])
    before = Follower(feed, 1)
    run(feed, before)
    worker, loaded = loading(pair, -1, SlotState())
    follower = Follower(feed, 2)
    run(feed, before, follower)
    assert before.ended is not None
    worker.step(loaded)
    run(feed, follower)
    assert follower.began == -1


def test_converted_state_is_a_gap_that_is_told() -> None:
    """It is of no epoch. Who begins now begins behind the next one: what reads give from then on is converted."""
    pair = Pair()
    for number in range(2):
        pair.say(number, Recover(2, {0: 0, 1: 1}, None, {0: "a/1", 1: "b/1"}))
        state = SlotState().replaced({"account": {KEYS[0]: msgspec.msgpack.encode(7)}}) if number == 0 else SlotState()
        pair.step(number, StateLoaded(2, 40, 0, {number: LoadedSlot(state, 0, [])}, [], {}))
        pair.say(number, Resume(2))
    pair.generation = 2
    feed = Followers(worker := pair.workers[0])
    late, behind, now = Follower(feed, 1, 40), Follower(feed, 2, 41), Follower(feed, 3)
    run(feed, late, behind, now)
    assert late.ended is not None
    assert late.ended.code == TOO_OLD
    assert (behind.began, now.began) == (41, None)
    for epoch in (41, 42):
        pair.put(0, epoch)
        pair.join(epoch)
        pair.close(epoch)
        run(feed, behind, now)
        assert now.began == 41
    assert worker.epoch == 42
    assert [epoch.epoch for epoch in behind.epochs] == [epoch.epoch for epoch in now.epochs] == [42]
    run(feed, other := Follower(feed, 4, 40))
    assert other.ended is not None, "nor does anybody get over it later"


def test_who_begins_while_an_epoch_commits_is_told_so_when_that_has_closed() -> None:
    """A read that it makes then has the epoch, whatever freshness it asks for."""
    rng = Random("commits")
    engine = Stepping(chaos_app)
    feed = Followers(engine.worker)
    who: list[Follower] = []

    def look() -> None:
        if is_committing(engine.worker) and not who:
            who.append(Follower(feed, 1))
        for given in feed.run() if who else ():
            who[0].take(given)
            assert who[0].began is not None
            assert who[0].began <= last_closed(engine.worker)

    engine.looks.append(look)
    for number in range(10):
        write(engine, rng, number, CONTENDED)
    assert who
    assert who[0].began is not None
