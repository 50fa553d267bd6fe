"""Large transactions, within every documented limit, in a tenth of their full size: each is answered, small requests go
on meanwhile, nobody dies; also when whoever runs them is killed in the middle.

`python -m proof.large` runs them in full.
"""

from __future__ import annotations

import asyncio
import secrets
from pathlib import Path

import pytest

from proof.large.places import on_cluster, on_embedded
from proof.large.run import CASES, MB
from tests.real_services import RealKafka

SHARE = 0.1


def test_shares() -> None:
    assert CASES["reads"].scaled(0.1).requests == 80
    one = CASES["arguments"].scaled(0.1)
    assert (one.requests, one.arguments, one.result) == (1, (20, MB), 20)
    assert CASES["puts"].scaled(0.001).requests == 2


@pytest.mark.slow
@pytest.mark.parametrize("kill", [False, True])
@pytest.mark.parametrize("name", CASES)
def test_on_dev(name: str, kill: bool, tmp_path: Path) -> None:
    outcome = asyncio.run(on_embedded(CASES[name].scaled(SHARE), tmp_path, kill))
    assert not outcome.problems
    assert outcome.small_answered


@pytest.mark.slow
@pytest.mark.parametrize("kill", [False, True])
@pytest.mark.parametrize("name", CASES)
def test_on_a_cluster(name: str, kill: bool, kafka: RealKafka, tmp_path: Path) -> None:
    # One transaction is small enough as it is, and only the whole of it was too large for a frame.
    case = CASES[name] if name in ("arguments", "outside") else CASES[name].scaled(SHARE)
    run = on_cluster(case, tmp_path, kill, kafka.bootstrap, f"large-{secrets.token_hex(4)}")
    outcome = asyncio.run(run)
    assert not outcome.problems
    assert outcome.small_answered
