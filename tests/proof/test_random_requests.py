"""Random programs are reproducible, bounded, and reach what they are meant to reach; steps do what they say."""

from __future__ import annotations

from collections import Counter
from random import Random
from typing import Any

import msgspec
import pytest

from proof.bank import money_made
from proof.chaos_app import FRESH_KEYS, MODULUS, Cell, app, key_of, pair
from proof.poisons import POISONS
from proof.random_requests import (
    MIXED,
    PROFILES,
    SPREAD,
    Profile,
    calls_in,
    random_load,
    random_program,
    random_read,
    random_request,
)
from styx.messages import Request, encode_request
from styx.testing import SerialReference, state_hash

NOW_US = 1_700_000_000_000_000


def play(reference: SerialReference, *steps: list[Any], operator: str = "text", key: Any = "k0", tid: int = 1) -> Any:
    request = Request("r", operator, key, "run", msgspec.msgpack.encode([steps]))
    outcome = reference.run(tid, NOW_US, request)
    if outcome.error is not None:
        return outcome.error[1]
    assert outcome.result is not None
    return msgspec.msgpack.decode(outcome.result)


@pytest.fixture
def reference() -> SerialReference:
    return SerialReference(app)


# The interpreter -----------------------------------------------------------------------------------------------


def test_local_steps(reference: SerialReference) -> None:
    assert play(reference, ["add", 5]) == 5
    assert play(reference, ["read"], ["mix", 2]) == (5 * 31 + 5 * 7 + 2) % MODULUS
    assert play(reference, ["set", 9], ["read"]) == 9
    assert play(reference, ["guard", 10], ["set", 1]) == "Low"
    assert play(reference, ["try", [["guard", 10]]]) == -1
    assert play(reference, ["delete"], ["read"]) == 0
    assert play(reference, ["raise"]) == "Chaos"
    assert reference.state == {}


def test_deterministic_steps_depend_on_the_transaction(reference: SerialReference) -> None:
    assert play(reference, ["now"]) == NOW_US % MODULUS
    for step in ("random", "uuid"):
        first, again, other = (play(reference, [step], tid=tid) for tid in (1, 1, 2))
        assert first == again != other


def test_all_operators_hold_the_same_state(reference: SerialReference) -> None:
    for operator, key in (("text", "k1"), ("number", 1), ("pair", [1, 1])):
        assert play(reference, ["set", 3], ["fresh", "sync", [["set", 8], ["read"]]], operator=operator, key=key) == 8
    assert reference.value("number", 1) == Cell(3, 1)
    assert reference.value("text", "k1") == {"number": 3, "counter": 1, "note": ""}
    assert reference.value("pair", (1, FRESH_KEYS + 1_001))["number"] == 8


def test_fresh_entities_of_composite_keys_share_the_counters_partition(reference: SerialReference) -> None:
    play(reference, ["fresh", "async", [["set", 1]]], operator="pair", key=[2, 5])
    assert len({pair.partition_of(key, 4) for _, key in reference.entities}) == 1
    assert len(reference.state) == 2


def test_calls_reach_their_targets(reference: SerialReference) -> None:
    play(
        reference,
        ["set", 6],
        ["read"],
        ["call", "sync", ["at", 1, 3], [["call", "sync", ["caller"], [["add", 1]]]]],
        ["call", "async", ["by", 2, 4], []],
        ["call", "async", ["self"], []],
    )
    assert reference.entities == [("text", "k0"), ("number", 3), ("text", "k0"), ("pair", (0, 3)), ("text", "k0")]
    assert key_of(2, 3) == (0, 3)


def test_a_mutated_argument_changes_nothing_else(reference: SerialReference) -> None:
    assert play(reference, ["mutate"], ["add", 1]) == 1


@pytest.mark.parametrize("kind", sorted(POISONS))
def test_every_poison_aborts(reference: SerialReference, kind: str) -> None:
    assert isinstance(play(reference, ["set", 1], ["poison", kind]), str)
    assert reference.state == {}


def test_transfers_keep_the_money(reference: SerialReference) -> None:
    params = msgspec.msgpack.encode(["bob", 60])
    request = Request("r", "account", "alice", "transfer", params)
    assert reference.run(1, 0, request).error is None
    assert (reference.value("account", "alice"), reference.value("account", "bob")) == (40, 160)
    outcome = reference.run(2, 0, request)
    assert outcome.error is not None
    assert outcome.error[1] == "InsufficientFunds"
    assert money_made(reference.state) == 0
    reference.state["account", "bob"] = msgspec.msgpack.encode(161)
    assert money_made(reference.state) == 1


# The generator -------------------------------------------------------------------------------------------------


def test_a_seed_names_its_requests() -> None:
    for profile in PROFILES:
        first, again = ([random_request(rng, profile) for _ in range(20)] for rng in (Random(7), Random(7)))
        assert first == again
    assert random_request(Random(1), SPREAD, "mine").request_id == "mine"


def test_programs_are_bounded_and_plain() -> None:
    profile = Profile(keys=2, calls_max=6)
    rng = Random(3)
    programs = [random_program(rng, profile) for _ in range(200)]
    assert max(map(calls_in, programs)) == profile.calls_max
    assert msgspec.json.decode(msgspec.json.encode(programs)) == programs


def test_a_profile_must_make_sense() -> None:
    with pytest.raises(ValueError, match="at least one key"):
        Profile(keys=0)


def steps_of(steps: list[Any]) -> set[str]:
    found = set()
    for name, *operands in steps:
        found.add(name if name != "call" else f"call {operands[0]} {operands[1][0]}")
        for operand in operands:
            if isinstance(operand, list) and all(isinstance(step, list) for step in operand):
                found |= steps_of(operand)
    return found


def test_every_step_and_every_kind_of_call_is_generated() -> None:
    rng = Random(5)
    found = set().union(*(steps_of(random_program(rng)) for _ in range(400)))
    local = {"read", "add", "mix", "set", "keep", "delete", "guard", "fresh", "if", "try", "raise"}
    facts = {"random", "uuid", "now", "mutate"}
    calls = {f"call {mode} {target}" for mode in ("sync", "async") for target in ("at", "by", "self", "caller")}
    assert found == local | facts | calls


def test_random_requests_commit_mostly_and_end_in_every_way() -> None:
    rng = Random(11)
    reference = SerialReference(app)
    ends: dict[str, int] = {}
    for tid in range(1, 601):
        outcome = reference.run(tid, NOW_US, random_request(rng, PROFILES[0]))
        end = "committed" if outcome.error is None else outcome.error[0]
        ends[end] = ends.get(end, 0) + 1
    assert ends["committed"] > 450
    assert set(ends) >= {"committed", "aborted", "bad_arguments", "unknown_function"}
    assert money_made(reference.state) == 0


def test_the_reference_is_deterministic() -> None:
    hashes = set()
    for _ in range(2):
        rng, reference = Random(13), SerialReference(app)
        for tid in range(1, 101):
            reference.run(tid, NOW_US + tid, random_request(rng, PROFILES[0]))
        hashes.add(state_hash(reference.state))
    assert len(hashes) == 1


N_SLOTS = 4


def test_a_seed_names_a_load_for_good() -> None:
    first, again = Random(3), Random(3)
    for _ in range(50):
        assert encode_request(random_load(first, MIXED, N_SLOTS, "l")) == encode_request(
            random_load(again, MIXED, N_SLOTS, "l")
        )


def test_they_come_to_every_end_and_make_no_money() -> None:
    rng, reference, ends = Random(5), SerialReference(app, n_slots=N_SLOTS), Counter[str]()
    for tid in range(1, 1500):
        if tid % 2:
            reference.run(tid, 0, random_request(rng, MIXED, f"r{tid}"))
            continue
        outcome = reference.run(tid, 0, random_load(rng, MIXED, N_SLOTS, f"l{tid}"))
        ends["loaded" if outcome.error is None else outcome.error[1]] += 1
    assert set(ends) == {"loaded", "KeyExists", "BadArguments", "BadKey"}
    assert min(ends.values()) > 20
    assert money_made(reference.state) == 0


def test_a_seed_names_a_read_for_good() -> None:
    first, again = Random(3), Random(3)
    for _ in range(50):
        assert encode_request(random_read(first, MIXED, "g")) == encode_request(random_read(again, MIXED, "g"))


def test_they_come_to_every_end_and_change_nothing() -> None:
    rng, reference, ends = Random(5), SerialReference(app), Counter[str]()
    for tid in range(1, 1500):
        if tid % 2:
            reference.run(tid, 0, random_request(rng, MIXED, f"r{tid}"))
            continue
        before = dict(reference.state)
        outcome = reference.run(tid, 0, random_read(rng, MIXED, f"g{tid}"))
        assert reference.state == before
        ends["found" if outcome.error is None else outcome.error[1]] += 1
    assert set(ends) == {"found", "UnknownEntity", "BadKey"}
    assert min(ends.values()) > 5
