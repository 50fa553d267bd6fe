"""Random loads are reproducible, come to every end that a load can have, and make no money."""

from __future__ import annotations

from collections import Counter
from random import Random

from proof.chaos_app import app, money_made
from proof.random_loads import random_load
from proof.random_programs import MIXED, random_request
from styx.messages import encode_request
from styx.testing import SerialReference

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
