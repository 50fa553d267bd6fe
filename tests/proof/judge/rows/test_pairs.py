"""Pairs that want one unique value: an engine lets one of each commit, and each way to fail is told."""

from __future__ import annotations

import asyncio
from random import Random

import pytest

from proof.judge.__main__ import main
from proof.judge.app import app
from proof.judge.rows.pairs import Claim, Pair, Paired, Place, run_pairs, wrong_rows, wrong_with
from styx.client.embedded import embedded
from styx.messages import Reply, ReplyError
from styx.model.app_index import AppIndex
from styx.worker import validation
from tests.plain_form import plain_form


def paired(pairs: int) -> Paired:
    async def run() -> Paired:
        async with embedded(app) as client:
            return await run_pairs([client], pairs=pairs, processes=5, seed=1, first=0)

    return asyncio.run(run())


def test_exactly_one_of_each_pair_commits() -> None:
    done = paired(120)
    assert (done.pairs, done.unknown, done.problems) == (120, [], [])
    assert done.beside > 20
    assert done.across > 10
    assert sum(len(held) for held in done.held.values()) == 120
    assert {table for table, _ in done.held} == {"names", "badges"}


@plain_form
def test_an_engine_that_does_not_validate_what_an_insert_read_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(validation, "conflicts_of_ranges", lambda slot, accesses, gone: set())
    done = paired(120)
    assert any("wants the same name: 2 have committed" in problem for problem in done.problems)


def reply(error: str | None = None) -> Reply:
    return Reply(None, None if error is None else ReplyError(error, "", "aborted"), 1, 1, 1, "")


@pytest.mark.parametrize(
    ("replies", "wrong"),
    [
        ([reply(), reply("UniqueViolation")], ""),
        ([reply("UniqueViolation"), reply()], ""),
        ([reply(), reply()], "2 have committed"),
        ([reply("UniqueViolation"), reply("UniqueViolation")], "0 have committed"),
        ([reply(), reply("RowExists")], "the one that has not committed ended with"),
    ],
)
def test_a_pair_must_have_one_that_commits_and_one_that_is_refused_for_that(replies: list[Reply], wrong: str) -> None:
    assert wrong_with("name", replies).startswith(wrong)
    assert bool(wrong_with("name", replies)) is bool(wrong)


def test_rows_that_no_winner_has_are_told() -> None:
    async def run() -> Paired:
        async with embedded(app) as client:
            await client.call("shelf", 0, "claim", "names", 0, -1, -1, False)
            return await run_pairs([client], pairs=10, processes=1, seed=1, first=0)

    (problem,) = asyncio.run(run()).problems
    assert problem == "names of shelf 0: [(-1, -1)] are too many or too few"


def test_a_row_that_the_index_over_the_app_does_not_know_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(AppIndex, "calls", lambda index, key, old, new: [])
    problems = paired(30).problems
    assert any("wants the same badge: 2 have committed" in problem for problem in problems)
    assert any(" for [], but [[" in problem for problem in problems)


def test_of_an_unknown_pair_one_row_may_be_there_or_none() -> None:
    pair = Pair(0, 0, Random(1))
    done = Paired(unknown=[pair], held={place: set() for place in pair.places})
    one, other = zip(pair.places, pair.claims, strict=True)
    none: dict[Place, list[Claim]] = {place: [] for place in pair.places}
    assert wrong_rows(done, none) == []
    assert wrong_rows(done, {**none, one[0]: [one[1]]}) == []
    both = {place: [claim for at, claim in (one, other) if at == place] for place in pair.places}
    (problem,) = wrong_rows(done, both)
    assert problem == f"{pair}: both rows are there"


def test_the_command_tells_what_became_of_pairs(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["pairs", "--pairs", "20"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("pairs: 20 of which exactly one must commit")
    assert out.endswith(" 0 unknown; 0 problems\n")
