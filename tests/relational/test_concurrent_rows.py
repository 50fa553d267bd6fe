"""Concurrent transactions with every kind of statement in a real engine, replayed serially; all constraints hold."""

from __future__ import annotations

import asyncio
from random import Random
from typing import Any

import msgspec
import pytest

from styx import App, Check, Context, Index, Operator, Ref, TransactionAborted, at_least
from styx.testing import embedded_cluster

pytestmark = pytest.mark.anyio


class Team(msgspec.Struct):
    number: int
    name: str


class Player(msgspec.Struct):
    name: str
    team: int | None
    points: int
    rival: int | None = None
    number: int = 0


club = Operator("club", key_type=int)
teams = club.table("teams", Team, key="number", indexes=Index("named", equal="name", unique=True))
players = club.table(
    "players",
    Player,
    key="number",
    auto="serial",
    indexes=[Index("best", equal="team", order="points"), Index("one", equal=("team", "name"), unique=True)],
    checks=Check("points", lambda row: 0 <= row.points < 20),
    references=[Ref("team", teams, "cascade"), Ref("rival", "players", "set_null")],
)


async def _statement(ctx: Context, random: Random) -> Any:
    """One random statement; what it does depends on what the transaction reads."""
    rows, number = ctx.rows(players), random.randrange(1, 30)
    team = random.choice([None, 0, 1, 2])
    kind = random.randrange(10)
    if kind < 3:
        rival = random.choice(await rows.keys() or [None])
        return (await rows.insert(Player(random.choice("abcdef"), team, random.randrange(20), rival))).number
    if kind == 3:
        return await ctx.rows(teams).insert(Team(random.randrange(3), random.choice("xyz")), on_conflict="keep")
    if kind == 4 and random.random() < 0.3:
        return await ctx.rows(teams).delete(random.randrange(3))
    if kind == 5:
        return await rows.delete(number)
    if kind == 6 and await rows.get(number) is not None:
        return await rows.update(number, points=await rows.count(team=team))
    if kind == 7:
        return await rows.delete_where(team=team, points=at_least(18))
    if kind == 8:  # a number of its own, which later numbers must not meet
        brought = Player(random.choice("abcdef"), None, 1, number=random.randrange(1, 200))
        return (await rows.insert(brought, on_conflict="keep")).number
    return [row.number for row in await rows.select(team=team, points=at_least(3), last=2)]


@club.register
async def run(ctx: Context, seed: int, depth: int = 0) -> list[Any]:
    random = Random(seed)
    results = []
    for _ in range(random.randrange(1, 4)):
        results.append(await _statement(ctx, random))
        if depth < 2 and random.random() < 0.2:
            ctx.call_async(club, run, random.randrange(3), (random.randrange(10**6), depth + 1))
        if depth < 2 and random.random() < 0.2:
            results += await ctx.call(club, run, random.randrange(3), (random.randrange(10**6), depth + 1))
    return results


@club.register(read_only=True)
async def all_rows(ctx: Context) -> tuple[list[Team], list[Player]]:
    return await ctx.rows(teams).select(), await ctx.rows(players).select()


@pytest.mark.parametrize("seed", range(3))
async def test_all_constraints_hold_whatever_runs_at_once(seed: int) -> None:
    async with embedded_cluster(App("club", [club]), n_slots=2) as cluster:
        calls = [cluster.call(club, number % 3, run, seed * 1_000 + number) for number in range(200)]
        outcomes = await asyncio.gather(*calls, return_exceptions=True)
        refusals = {each.type for each in outcomes if isinstance(each, TransactionAborted)}
        assert refusals == {"UniqueViolation", "ReferenceViolation"}
        assert all(isinstance(each, list | TransactionAborted) for each in outcomes)
        for entity in range(3):
            stored_teams, stored = await cluster.call(club, entity, all_rows)
            assert len({team.name for team in stored_teams}) == len(stored_teams)
            numbers, team_numbers = {row.number for row in stored}, {team.number for team in stored_teams}
            assert all(row.team in {None, *team_numbers} and row.rival in {None, *numbers} for row in stored)
            assert all(0 <= row.points < 20 for row in stored)
            in_teams = [(row.team, row.name) for row in stored if row.team is not None]
            assert len(set(in_teams)) == len(in_teams)
