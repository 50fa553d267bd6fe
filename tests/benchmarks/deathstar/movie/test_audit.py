"""The audit finds what is lost, doubled or done by halves, and nothing where there is nothing."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable
from typing import Any

import msgspec
import pytest

import styx
from benchmarks.deathstar.movie.app import app
from benchmarks.deathstar.movie.catalogue import title, username
from benchmarks.deathstar.movie.composing import compose_review
from benchmarks.deathstar.movie.ledger import SHOWN_MAX
from benchmarks.deathstar.movie.lists import HEAD, Page
from benchmarks.deathstar.movie.ratings import Rating
from benchmarks.deathstar.movie.settings import Settings
from benchmarks.deathstar.movie.storage import Review, ReviewKey
from benchmarks.deathstar.movie.workload import Movie
from benchmarks.driver.lossy import LossyApp, parse
from benchmarks.driver.workload import Audit, Generator, Planned
from styx import App
from styx.client.embedded import EmbeddedClient
from styx.messages import Reply

REQUESTS = 60
OPTIONS: dict[str, Any] = {"users": 6, "movies": 5, "mix": "mixed", "unknown_title": 0.1, "long_text": 0.1}

Sent = list[tuple[Planned, Reply]]
Tampering = Callable[[EmbeddedClient, Generator, Sent], Awaitable[None]]


async def _nothing(client: EmbeddedClient, generator: Generator, composed: Sent) -> None: ...


def audited(tamper: Tampering = _nothing, app: App = app, witnessed: bool = True, **options: Any) -> Audit:
    """A run, what `tamper` does to the state or to the witness, and the audit; `composed` are committed reviews."""

    async def run() -> Audit:
        workload = Movie(Settings(**OPTIONS | options))
        async with styx.embedded(app) as client:
            for loading in workload.initial():
                await client.load(loading.operator, loading.pairs)
            generators = [workload.generator(number, 2, seed=1) for number in range(2)]
            composed = []
            for generator in generators:
                sent = [generator.next() for _ in range(REQUESTS)]
                replies = await asyncio.gather(
                    *(client.submit(p.operator, p.key, p.function, *p.arguments) for p in sent)
                )
                for planned, reply in zip(sent, replies, strict=True):
                    generator.answered(planned, reply)
                    if reply.error is None and planned.kind == "compose":
                        composed.append((planned, reply))
            await tamper(client, generators[0], composed)
            # As it is between two processes.
            witnesses = [msgspec.msgpack.decode(msgspec.msgpack.encode(g.witness())) for g in generators]
            return await workload.audit(client, witnesses if witnessed else [])

    return asyncio.run(run())


def key_of(sent: tuple[Planned, Reply]) -> ReviewKey:
    return sent[1].result["movie_id"], sent[1].result["review_id"]


async def replace(client: EmbeddedClient, operator: str, key: Any, value: Any) -> None:
    await client.load(app.operators[operator], [(key, value)], replace=True)


async def stored(client: EmbeddedClient, key: ReviewKey) -> Review:
    return msgspec.convert(await client.call("review_storage", key, "read"), Review)


async def head_of(client: EmbeddedClient, lists: str, owner: int) -> Page:
    return msgspec.convert(await client.call(lists, (owner, HEAD), "listed"), Page)


@pytest.mark.parametrize("mix", ["compose", "mixed"])
@pytest.mark.parametrize("zipf", [0.0, 0.99])
def test_a_sound_run_passes(mix: str, zipf: float) -> None:
    audit = audited(mix=mix, zipf=zipf)
    assert audit.violations == []
    assert any("the ratings of all 5 movies" in text for text in audit.checked)
    assert any("pages of movies" in text for text in audit.checked) == (mix == "mixed")


def test_reviews_on_older_pages_are_found() -> None:
    assert audited(mix="compose", users=1, movies=1).violations == []


def test_without_a_witness_lists_storage_and_ratings_are_still_compared() -> None:
    assert audited(witnessed=False).violations == []

    async def tamper(client: EmbeddedClient, generator: Generator, composed: Sent) -> None:
        await replace(client, "rating", key_of(composed[0])[0], Rating(1, 1))

    assert len(audited(tamper, witnessed=False).violations) == 1


@pytest.mark.parametrize(
    ("lost", "said"),
    [
        ("review_storage.store", "UnknownReview"),
        ("movie_reviews.add", "stands in the lists of movies [] rather than in that of movie"),
        ("user_reviews.add", "stands in the lists of users [] rather than in that of user"),
        ("rating.rate", "the rating of the movie"),
    ],
)
def test_an_effect_that_the_app_loses_is_found(lost: str, said: str) -> None:
    lossy = LossyApp(app, parse(f"{lost}=0.1"))
    violations = audited(app=lossy.app, mix="compose").violations
    assert lossy.lost.invocations > 0
    assert all(said in text or "more faults" in text for text in violations)
    assert violations
    # Without a witness it is known from what was not lost.
    assert audited(app=lossy.app, mix="compose", witnessed=False).violations


@pytest.mark.parametrize("lists", ["user_reviews", "movie_reviews"])
def test_a_page_that_the_app_loses_is_found(lists: str) -> None:
    lossy = LossyApp(app, parse(f"{lists}.keep=1"))
    violations = audited(app=lossy.app, mix="compose", users=1, movies=1).violations
    assert len(violations) == SHOWN_MAX + 1
    assert "stands in the lists of" in violations[0]
    assert violations[-1] == "and 30 more faults in the state"


@pytest.mark.parametrize(
    "change", [{"text": "x"}, {"rating": 11}, {"user_id": 17}, {"timestamp": 0}, {"review_id": "x"}, {"movie_id": 17}]
)
def test_a_review_that_is_not_stored_as_it_was_told_is_found(change: dict[str, Any]) -> None:
    async def tamper(client: EmbeddedClient, generator: Generator, composed: Sent) -> None:
        key = key_of(composed[0])
        await replace(client, "review_storage", key, msgspec.structs.replace(await stored(client, key), **change))

    violations = audited(tamper).violations
    assert "rather than Written" in violations[0]


@pytest.mark.parametrize("lists", ["user_reviews", "movie_reviews"])
def test_a_review_that_stands_twice_in_a_list_is_found(lists: str) -> None:
    async def tamper(client: EmbeddedClient, generator: Generator, composed: Sent) -> None:
        key = key_of(composed[0])
        owner = key[0] if lists == "movie_reviews" else (await stored(client, key)).user_id
        head = await head_of(client, lists, owner)
        head.reviews.append(key)
        await replace(client, lists, (owner, HEAD), head)

    (violation,) = audited(tamper).violations
    assert "stands in the lists of" in violation


@pytest.mark.parametrize("lists", ["user_reviews", "movie_reviews"])
def test_a_review_that_stands_in_anothers_list_too_is_found(lists: str) -> None:
    async def tamper(client: EmbeddedClient, generator: Generator, composed: Sent) -> None:
        key = key_of(composed[0])
        owner = key[0] if lists == "movie_reviews" else (await stored(client, key)).user_id
        other = (owner + 1) % 5
        head = await head_of(client, lists, other)
        head.reviews.insert(0, key)
        await replace(client, lists, (other, HEAD), head)

    (violation,) = audited(tamper).violations
    assert "stands in the lists of" in violation


@pytest.mark.parametrize("lists", ["user_reviews", "movie_reviews"])
def test_a_list_in_another_order_is_found(lists: str) -> None:
    async def tamper(client: EmbeddedClient, generator: Generator, composed: Sent) -> None:
        head = await head_of(client, lists, 0)
        await replace(client, lists, (0, HEAD), Page([*head.reviews[1:], head.reviews[0]], head.older))

    violations = audited(tamper, mix="compose", users=1, movies=1).violations
    assert violations
    assert all("stands behind the later one" in text for text in violations)


def test_a_page_that_leads_nowhere_is_found() -> None:
    async def tamper(client: EmbeddedClient, generator: Generator, composed: Sent) -> None:
        page = msgspec.convert(await client.call("user_reviews", (0, 2), "listed"), Page)
        await replace(client, "user_reviews", (0, 2), Page(page.reviews, 0))

    assert audited(tamper, mix="compose", users=1, movies=1, unknown_title=0.0, long_text=0.0).violations == [
        "user_reviews (0, 2) goes on at page 0 rather than 1"
    ]


def test_a_review_that_nobody_was_told_of_is_found() -> None:
    async def tamper(client: EmbeddedClient, generator: Generator, composed: Sent) -> None:
        planned, _ = composed[0]
        await client.call(planned.operator, planned.key, planned.function, *planned.arguments)

    violations = audited(tamper).violations
    assert len(violations) == 2
    assert "is there, and nobody was told" in violations[0]
    assert "the rating of the movie" in violations[1]


def test_an_id_in_a_list_that_stands_for_nothing_is_found() -> None:
    async def tamper(client: EmbeddedClient, generator: Generator, composed: Sent) -> None:
        head = await head_of(client, "user_reviews", 0)
        await replace(client, "user_reviews", (0, HEAD), Page([*head.reviews, (1, "nothing")], head.older))

    (violation,) = audited(tamper).violations
    assert "of which nobody was told, is in a list: UnknownReview" in violation


@pytest.mark.parametrize("rated", [Rating(0, 0), Rating(1_000, 0), Rating(0, 1_000)])
def test_a_rating_that_does_not_add_up_is_found(rated: Rating) -> None:
    async def tamper(client: EmbeddedClient, generator: Generator, composed: Sent) -> None:
        await replace(client, "rating", key_of(composed[0])[0], rated)

    (violation,) = audited(tamper).violations
    assert "count and sum" in violation


def test_a_review_that_two_requests_were_told_of_is_found() -> None:
    async def tamper(client: EmbeddedClient, generator: Generator, composed: Sent) -> None:
        generator.answered(*composed[0])

    (violation,) = audited(tamper).violations
    assert "two requests were told" in violation


def test_a_review_that_was_told_and_is_not_there_at_all_is_found() -> None:
    async def tamper(client: EmbeddedClient, generator: Generator, composed: Sent) -> None:
        planned, reply = composed[0]
        generator.answered(planned, reply._replace(result={**reply.result, "review_id": "another"}))

    violations = audited(tamper).violations
    assert len(violations) == 4
    assert "UnknownReview" in violations[0]


UNANSWERED = Planned("compose", compose_review, username(3), "compose", (title(2), 4, "was it heard?"))


@pytest.mark.parametrize("times", [0, 1])
def test_a_review_without_an_answer_may_be_there_or_not(times: int) -> None:
    async def tamper(client: EmbeddedClient, generator: Generator, composed: Sent) -> None:
        generator.unknown(UNANSWERED)
        for _ in range(times):
            await client.call(UNANSWERED.operator, UNANSWERED.key, UNANSWERED.function, *UNANSWERED.arguments)

    audit = audited(tamper)
    assert audit.violations == []
    assert any(text.startswith(f"1 reviews without an answer: {times} are there") for text in audit.checked)


def test_a_review_without_an_answer_that_is_there_twice_is_found() -> None:
    async def tamper(client: EmbeddedClient, generator: Generator, composed: Sent) -> None:
        generator.unknown(UNANSWERED)
        for _ in range(2):
            await client.call(UNANSWERED.operator, UNANSWERED.key, UNANSWERED.function, *UNANSWERED.arguments)

    violations = audited(tamper).violations
    assert len(violations) == 2
    assert "nobody was told" in violations[0]


def test_a_review_without_an_answer_that_is_there_by_half_is_found() -> None:
    async def tamper(client: EmbeddedClient, generator: Generator, composed: Sent) -> None:
        generator.unknown(UNANSWERED)
        await client.call(UNANSWERED.operator, UNANSWERED.key, UNANSWERED.function, *UNANSWERED.arguments)
        head = await head_of(client, "user_reviews", 3)
        await replace(client, "user_reviews", (3, HEAD), Page(head.reviews[:-1], head.older))

    (violation,) = audited(tamper).violations
    assert "stands in the lists of users [] rather than in that of user 3" in violation


def test_another_review_than_the_one_without_an_answer_is_found() -> None:
    async def tamper(client: EmbeddedClient, generator: Generator, composed: Sent) -> None:
        generator.unknown(UNANSWERED)
        await client.call(UNANSWERED.operator, UNANSWERED.key, UNANSWERED.function, title(2), 5, "was it heard?")

    assert "nobody was told" in audited(tamper).violations[0]


class LateClient(EmbeddedClient):
    """The request without an answer stands in the log before the first read of its username, and has not run."""

    late = True

    def submit(self, operator: Any, key: Any, function: Any, *args: Any, **options: Any) -> Awaitable[Reply]:
        if key == UNANSWERED.key and self.late:
            self.late = False
            super().submit(UNANSWERED.operator, key, UNANSWERED.function, *UNANSWERED.arguments)
        return super().submit(operator, key, function, *args, **options)


def test_a_review_without_an_answer_has_happened_before_the_state_is_read_if_it_happens() -> None:
    workload = Movie(Settings(**OPTIONS))

    async def run() -> Audit:
        async with LateClient(styx.embedded(app).engine) as client:
            for loading in workload.initial():
                await client.load(loading.operator, loading.pairs)
            generator = workload.generator(0, 1, seed=1)
            generator.unknown(UNANSWERED)
            return await workload.audit(client, [generator.witness()])

    audit = asyncio.run(run())
    assert audit.violations == []
    assert any("1 reviews without an answer: 1 are there" in text for text in audit.checked)


class BrokenClient(EmbeddedClient):
    """Answers nothing about the lists of user 2 and the rating of movie 4."""

    def submit(self, operator: Any, key: Any, function: Any, *args: Any, **options: Any) -> Awaitable[Reply]:
        if (operator.name, key) in (("user_reviews", (2, HEAD)), ("rating", 4)):
            future: asyncio.Future[Reply] = asyncio.get_running_loop().create_future()
            future.set_exception(TimeoutError("no reply"))
            return future
        return super().submit(operator, key, function, *args, **options)


def test_what_cannot_be_read_is_a_violation() -> None:
    workload = Movie(Settings(**OPTIONS))

    async def run() -> Audit:
        async with BrokenClient(styx.embedded(app).engine) as client:
            for loading in workload.initial():
                await client.load(loading.operator, loading.pairs)
            return await workload.audit(client, [])

    assert asyncio.run(run()).violations == [
        "user_reviews (2, 0): could not be read: no reply",
        "the rating of the movie 4 is could not be read: no reply rather than (0, 0), count and sum",
    ]


def test_the_mix_of_the_sound_run_has_every_outcome() -> None:
    generator = Movie(Settings(**OPTIONS)).generator(0, 2, seed=1)
    planned = [generator.next() for _ in range(REQUESTS)]
    kinds = Counter(request.kind for request in planned)
    assert set(kinds) == {"compose", "read-movie", "read-user"}
