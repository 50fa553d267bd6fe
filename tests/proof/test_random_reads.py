"""Random reads are reproducible, come to every end that a read can have, and change nothing."""

from __future__ import annotations

from collections import Counter
from random import Random

from proof.chaos_app import app
from proof.random_programs import MIXED, random_request
from proof.random_reads import random_read
from styx.messages import encode_request
from styx.testing import SerialReference


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
