"""A reply that no serial order of transactions gives is noted; any other is not."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec
import pytest

import styx
from benchmarks.deathstar.movie.catalogue import info, title, unknown_title, username
from benchmarks.deathstar.movie.composing import compose_review
from benchmarks.deathstar.movie.lists import LATEST
from benchmarks.deathstar.movie.pages import page
from benchmarks.deathstar.movie.parts import TEXT_CHARS_MAX
from benchmarks.deathstar.movie.settings import Settings
from benchmarks.deathstar.movie.witness import VIOLATIONS_KEPT_MAX, Witness
from benchmarks.deathstar.movie.workload import Movie
from benchmarks.driver.workload import Audit, Planned
from styx.messages import Reply, ReplyError

SETTINGS = Settings(users=4, movies=4)
INFO = msgspec.to_builtins(info(2))


def composing(movie: str = title(2), text: str = "well made") -> Planned:
    return Planned("compose", compose_review, username(3), "compose", (movie, 6, text))


def reading(kind: str, key: str) -> Planned:
    return Planned(kind, page, key, kind.replace("-", "_"), ())


def committed(result: Any) -> Reply:
    return Reply(result, None, 1, 0, 1, "r")


def refused(error: str, code: str = "aborted") -> Reply:
    return Reply(None, ReplyError(error, "", code), 1, 0, 0, "r")


def review(number: int = 0, **changes: Any) -> dict[str, Any]:
    whole = {"review_id": f"r{number}", "user_id": 3, "movie_id": 2, "text": "x", "rating": 6, "timestamp": 5}
    return {**whole, **changes}


def shown(count: int, total: int, *reviews: dict[str, Any]) -> Reply:
    return committed({"info": INFO, "rating": {"count": count, "total": total}, "reviews": [*reviews]})


COMPOSED = {"review_id": "r", "movie_id": 2, "timestamp": 5}
READ_MOVIE, READ_USER = reading("read-movie", title(2)), reading("read-user", username(3))


@pytest.mark.parametrize(
    ("planned", "reply"),
    [
        (composing(unknown_title(2)), committed(COMPOSED)),
        (composing(text="x" * (TEXT_CHARS_MAX + 1)), committed(COMPOSED)),
        (composing(), committed({**COMPOSED, "movie_id": 1})),
        (composing(), committed({**COMPOSED, "review_id": None})),
        (composing(), committed({"review_id": "r", "movie_id": 2})),
        (composing(), committed(None)),
        (composing(), refused("UnknownMovie")),
        (composing(), refused("UnknownUser")),
        (composing(unknown_title(2)), refused("TextTooLong")),
        (READ_MOVIE, refused("UnknownReview")),
        (READ_MOVIE, committed(None)),
        (READ_MOVIE, committed({"info": {**INFO, "title": title(1)}, "rating": {}, "reviews": []})),
        (READ_MOVIE, committed({"info": {**INFO, "year": 1}, "rating": {"count": 0, "total": 0}, "reviews": []})),
        (READ_MOVIE, shown(1, 6)),
        (READ_MOVIE, shown(0, 0, review())),
        (READ_MOVIE, shown(2, 11, review(0), review(1))),
        (READ_MOVIE, shown(2, 12, review(0), review(0))),
        (READ_MOVIE, shown(1, 6, review(movie_id=1))),
        (READ_MOVIE, shown(1, 11, review(rating=11))),
        (READ_MOVIE, shown(LATEST + 1, 99, *map(review, range(LATEST + 1)))),
        (READ_USER, committed(None)),
        (READ_USER, committed([review(user_id=2)])),
        (READ_USER, committed([review(0), review(0)])),
        (READ_USER, committed([None])),
        (READ_USER, committed([*map(review, range(LATEST + 1))])),
    ],
)
def test_a_reply_that_no_serial_order_gives_is_noted(planned: Planned, reply: Reply) -> None:
    witness = Witness(SETTINGS)
    for _ in range(VIOLATIONS_KEPT_MAX + 1):
        witness.answered(planned, reply)
    report = witness.report()
    assert report["composed"] == []
    assert len(report["violations"]) == VIOLATIONS_KEPT_MAX

    async def run() -> Audit:
        workload = Movie(SETTINGS)
        async with styx.embedded(workload.app) as client:
            for loading in workload.initial():
                await client.load(loading.operator, loading.pairs)
            return await workload.audit(client, [report])

    violations = asyncio.run(run()).violations
    assert violations == [*report["violations"], "and 1 replies more of a client that no serial order can give"]


@pytest.mark.parametrize(
    ("planned", "reply"),
    [
        (composing(), committed(COMPOSED)),
        (composing(), refused("RequestRejected", "overloaded")),
        (composing(unknown_title(2)), refused("UnknownMovie")),
        (composing(text="x" * (TEXT_CHARS_MAX + 1)), refused("TextTooLong")),
        (READ_MOVIE, shown(0, 0)),
        (READ_MOVIE, shown(2, 9, review(0), review(1, rating=3))),
        (READ_MOVIE, shown(LATEST + 1, 99, *map(review, range(LATEST)))),
        (READ_USER, committed([])),
        (READ_USER, committed([review(0), review(1, movie_id=1)])),
    ],
)
def test_any_other_reply_is_not_noted(planned: Planned, reply: Reply) -> None:
    witness = Witness(SETTINGS)
    witness.answered(planned, reply)
    assert witness.report()["violations"] == []


def test_what_cannot_be_there_is_not_waited_for() -> None:
    witness = Witness(SETTINGS)
    for planned in (READ_MOVIE, READ_USER, composing(), composing(unknown_title(2)), composing(text="x" * 2001)):
        witness.unknown(planned)
    report = witness.report()
    assert (len(report["unknown"]), report["counts"]) == (1, {"unknown": 3})
