"""A process under load killed by SIGKILL, again and again: nothing it had told is lost, done twice, or contradicted."""

from __future__ import annotations

import os
import random
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest

import styx
from styx.messages import ReplyRecord
from styx.testing import check_history, read_history_of
from styx.testing.patience import PATIENCE_SECONDS
from styx.values.codec import decode_plain
from tests.embedded.kill_child import IN_FLIGHT, NOTES_NAME
from tests.embedded.ledger_app import app, note, note_into, outside

pytestmark = [pytest.mark.slow, pytest.mark.anyio]

ROOT = Path(__file__).parents[2]
N_SLOTS = 4
N_KILLS = 12


class Moment:
    """When to kill: `replies` after it is ready (None: while it starts) and so many seconds later."""

    def __init__(self, replies: int | None, seconds: float, snapshot_interval: float) -> None:
        self.replies = replies
        self.seconds = seconds
        self.snapshot_interval = snapshot_interval


def _moments(rng: random.Random) -> list[Moment]:
    before_the_first_snapshot = Moment(rng.randrange(1, 50), 0.0, 1000.0)
    early = [Moment(rng.randrange(1, 200), rng.random() * 0.01, 0.05) for _ in range(2)]
    in_recovery = [Moment(None, rng.random() * 0.03, 0.05) for _ in range(4)]
    under_load = [Moment(rng.randrange(500, 3_000), rng.random() * 0.05, 0.05) for _ in range(5)]
    rest = [*early, *under_load, *in_recovery]
    rng.shuffle(rest)
    assert len(rest) == N_KILLS - 1
    return [before_the_first_snapshot, *rest]


def _run_until(moment: Moment, data_dir: Path, seed: int) -> list[str]:
    """The replies the process had told when it was killed."""
    arguments = [str(data_dir), str(seed), str(moment.snapshot_interval)]
    child = subprocess.Popen(
        [sys.executable, "-m", "tests.embedded.kill_child", *arguments],
        stdout=subprocess.PIPE,
        text=True,
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    assert child.stdout is not None
    assert child.stdout.readline() == "starting\n"
    told = []
    if moment.replies is not None:
        assert child.stdout.readline() == "ready\n"
        told = [child.stdout.readline() for _ in range(moment.replies)]
    time.sleep(moment.seconds)
    child.kill()
    rest, _ = child.communicate()
    told += rest.splitlines(keepends=True)
    return [line.rstrip("\n") for line in told if line.endswith("\n") and line != "ready\n"]


def _line(record: ReplyRecord) -> str:
    outcome = decode_plain(record.result) if record.error is None else record.error[0]
    return f"{record.request_id} {record.epoch} {record.phase} {record.tid} {outcome}"


async def test_killed_again_and_again(tmp_path: Path) -> None:
    seed = int.from_bytes(os.urandom(4), "big")
    print(f"seed {seed}")
    rng = random.Random(seed)
    told: list[str] = []
    for number, moment in enumerate(_moments(rng)):
        told += _run_until(moment, tmp_path, seed + number)
    # What was begun outside and not logged to its end is run again.
    outside["note"] = note
    note_into(tmp_path / NOTES_NAME)
    async with styx.embedded(app, tmp_path, keep_log=True) as client:
        assert await client.engine.settled(PATIENCE_SECONDS)
        state = client.engine.encoded_state()
        assert client.engine.last_snapshot_epoch is not None
    history = read_history_of(tmp_path, N_SLOTS)
    report = check_history(
        app, history.requests, history.replies, state, n_slots=N_SLOTS, externals=history.externals, complete=True
    )
    runs = Counter((tmp_path / NOTES_NAME).read_text().split())
    # Once per success: what ran again had a kill between its intent and its outcome, in flight at the time.
    assert len(runs) > 50
    assert sum(number > 1 for number in runs.values()) <= N_KILLS * IN_FLIGHT
    assert {key.hex() for key in history.externals} >= runs.keys()
    given = {_line(record) for record in history.replies}
    assert [line for line in told if line not in given] == []
    assert len(told) == len(set(told)) > 2_000
    assert report.transactions >= len(told)
