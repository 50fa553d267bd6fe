"""Crons: what may be declared, when ticks are, and the entries that one has in its agenda."""

from __future__ import annotations

import itertools
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from styx import App, ConfigurationError, Context, Operator, Retry
from styx.model.agenda import agenda_of, decode_entry, encode_entry, entry_key
from styx.model.cron import begins, first_entry, is_cron_key, is_gone, last_tick, moment_us, next_entry, next_tick
from styx.schema.cron_entries import cron_entries, has_crons, without_crons


def us(text: str) -> int:
    return int(datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp() * 1_000_000)


@pytest.mark.parametrize(
    ("expression", "at", "before", "behind"),
    [
        ("0 3 * * *", "2026-03-01T03:00", "2026-03-01T03:00", "2026-03-02T03:00"),
        ("0 3 * * *", "2026-03-01T02:59:59.999999", "2026-02-28T03:00", "2026-03-01T03:00"),
        ("*/5 * * * *", "2026-03-01T03:07", "2026-03-01T03:05", "2026-03-01T03:10"),
        ("0 0 29 2 *", "2026-03-01T00:00", "2024-02-29T00:00", "2028-02-29T00:00"),
        ("30 12 * * MON", "2026-03-01T00:00", "2026-02-23T12:30", "2026-03-02T12:30"),
        ("0 0 L * *", "2026-03-15T00:00", "2026-02-28T00:00", "2026-03-31T00:00"),
        ("*/20 * * * * *", "2026-03-01T00:00:25", "2026-03-01T00:00:20", "2026-03-01T00:00:40"),
    ],
)
def test_ticks_are_in_utc(expression: str, at: str, before: str, behind: str) -> None:
    assert last_tick(expression, us(at)) == us(before)
    assert next_tick(expression, us(at)) == us(behind)


def test_between_two_ticks_is_no_other() -> None:
    for at in range(us("2026-03-01T00:00"), us("2026-03-01T00:02"), 7_654_321):
        assert last_tick("* * * * *", at) <= at < next_tick("* * * * *", at) == last_tick("* * * * *", at) + 60_000_000


# Declarations ----------------------------------------------------------------------------------------------


async def job(ctx: Context) -> None: ...


async def with_default(ctx: Context, days: int = 1, *more: int, **named: int) -> None: ...


async def with_parameter(ctx: Context, day: str) -> None: ...


async def with_named(ctx: Context, *, day: str) -> None: ...


async def without_context() -> None: ...


def plain(ctx: Context) -> None: ...


WRONG_EXPRESSIONS: list[Any] = [
    *("", " ", "x", "* * * *", "* * * * * * *", "60 * * * *", "* 24 * * *", "* * 0 * *", "* * * 13 *", "* * * * 9"),
    *("@daily", "*/0 * * * *", "5-1 * * * *", "0 0 30 2 *", "0 0 31 4 *", "-1 * * * *", "1,,2 * * * *", "* * * FOO *"),
    *("ü * * * *", "0 3 * * *" + " " * 300, "0 0 31 2,4,6 *", "1.5 * * * *", "* * * * MON#6", "0x1 * * * *"),
    *(None, 7, b"0 3 * * *", ["0 3 * * *"], timedelta(days=1)),
]


def test_what_is_no_expression_is_refused_at_the_declaration() -> None:
    for wrong in WRONG_EXPRESSIONS:
        with pytest.raises(ConfigurationError, match=r"report\.job: @….cron"):
            Operator("report").cron(wrong, key="all")(job)


@pytest.mark.parametrize("key_type", [str, int, (str, int)], ids=str)
def test_a_key_is_of_the_operators_type(key_type: Any) -> None:
    keys: list[Any] = ["a", 7, ("a", 7), ("a",), None, 1.5, ["a", 7, 8], "a" * 100_000]
    good = {str: "a", int: 7, (str, int): ("a", 7)}[key_type]
    for key in keys:
        if key != good:
            with pytest.raises(ConfigurationError, match="takes a key= of the operator's key type"):
                Operator("report", key_type=key_type).cron("* * * * *", key=key)(job)
    report = Operator("report", key_type=key_type)
    report.cron("* * * * *", key=good)(job)
    assert [cron.key for cron in report.crons.values()] == [good]


def test_a_key_has_a_place() -> None:
    report = Operator("report", partition_key=lambda key: key.split(":")[1])
    with pytest.raises(ConfigurationError, match=r"takes a key= that has a place: .* failed for 'all': IndexError"):
        report.cron("* * * * *", key="all")(job)
    report.cron("* * * * *", key="all:1")(job)


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (with_parameter, "also needs day"),
        (with_named, "also needs day"),
        (without_context, "lacks the context"),
        (plain, "not an `async def`"),
        (7, "not an `async def`"),
    ],
    ids=["a parameter", "a named one", "no context", "plain", "none"],
)
def test_functions_that_cannot_be_called_with_the_context_alone(function: Any, words: str) -> None:
    with pytest.raises(ConfigurationError, match=words):
        Operator("report").cron("* * * * *", key="a")(function)


def test_other_wrong_declarations() -> None:
    report = Operator("report")
    with pytest.raises(ConfigurationError, match="retry=Retry"):
        report.cron("* * * * *", key="a", retry=3)(job)  # type: ignore[arg-type]
    report = Operator("report")
    report.register(read_only=True)(job)
    with pytest.raises(ConfigurationError, match="would have no effect"):
        report.cron("* * * * *", key="a")(job)
    report = Operator("report")
    report.cron("* * * * *", key="a")(job)
    with pytest.raises(ConfigurationError, match="one expression can name several times"):
        report.cron("0 * * * *", key="a")(job)
    report.cron("0 * * * *", key="b")(job)
    App("app", [report])
    with pytest.raises(ConfigurationError, match="declare its crons before App"):
        report.cron("0 * * * *", key="c")(job)


def test_a_cron_registers_its_function_and_leaves_it_as_it_is() -> None:
    report = Operator("report")
    assert report.cron("* * * * *", key="a")(with_default) is with_default
    assert report.register(job) is job
    assert report.cron("  0   3 * *  * ", key="a", retry=Retry(2, timedelta(seconds=3)))(job) is job
    assert list(report.functions) == ["with_default", "job"]
    cron = report.crons["a", "job"]
    assert (cron.expression, cron.attempts, cron.first_pause_us) == ("0 3 * * *", 2, 3_000_000)
    with pytest.raises(ConfigurationError, match="already"):
        report.register(with_default)


# Entries ---------------------------------------------------------------------------------------------------


def app_with(*declared: tuple[str, str], attempts: int = 5) -> App:
    report = Operator("report")
    for expression, key in declared:
        report.cron(expression, key=key, retry=Retry(attempts))(job)
    return App("app", [report, Operator("other")])


def written(app: App, tables: Any = {}) -> dict[Any, Any]:  # noqa: B006 - it is not changed
    return cron_entries(app, tables, lambda operator, key: True).get("report/<agenda>", {})


def test_an_entry_begins_its_cron_and_gives_the_first_tick() -> None:
    app = app_with(("0 3 * * *", "a"))
    [(key, data)] = written(app).items()
    entry = decode_entry(data)
    assert key == entry_key("a", "*job")
    assert is_cron_key(key)
    assert begins(entry)
    assert moment_us(entry, 5) == 5
    following = next_entry(entry, us("2026-03-01T03:00"), "next")
    assert not begins(following)
    assert (following.due_us, following.id) == (us("2026-03-02T03:00"), "next")
    assert moment_us(following, us("2026-03-05T17:00")) == us("2026-03-05T03:00")


def test_entries_that_begin_have_ids_of_their_own() -> None:
    ids = set()
    for operator, expression, key in itertools.product(["a", "b"], ["* * * * *", "0 3 * * *"], ["x", "y"]):
        declared = Operator(operator)
        declared.cron(expression, key=key)(job)
        ids.add(first_entry(operator, declared.crons[key, "job"]).id)
    assert len(ids) == 8
    assert all(" " not in each for each in ids)


def test_a_changed_expression_gives_no_tick_that_was_made_whatever_the_clock_shows() -> None:
    agenda, made = agenda_of("report"), us("2026-03-01T03:00")
    [(key, data)] = written(app_with(("0 3 * * *", "a"))).items()
    stored = {key: encode_entry(next_entry(decode_entry(data), made, "next"))}
    for expression in ("0 3,4 * * *", "0 3 * * 0"):  # changed once more before the first change has begun
        stored = written(app_with((expression, "a")), {agenda: stored})
        begun = decode_entry(stored[key])
        assert begins(begun)
        assert begun.given_us == made


def test_a_cron_that_is_gone_for_some_versions_goes_on_behind_its_last_tick() -> None:
    agenda, made = agenda_of("report"), us("2026-03-01T03:00")
    cron = app_with(("0 3 * * *", "a"))
    [(key, data)] = written(cron).items()
    ticking = {key: encode_entry(next_entry(decode_entry(data), made, "next"))}
    gone = written(app_with(), {agenda: ticking})
    entry = decode_entry(gone[key])
    assert is_gone(entry)
    assert (entry.id, entry.due_us, entry.given_us) == ("gone-next", made + 86_400_000_000, made)
    assert not begins(entry)
    assert written(app_with(("0 4 * * *", "b")), {agenda: gone}).keys() == {entry_key("b", "*job")}, "it stays as it is"
    again = decode_entry(written(cron, {agenda: gone})[key])
    assert begins(again)
    assert again.given_us == made
    assert again.id != decode_entry(data).id, "two deliveries at one time would have one request id"
    begun = written(app_with(("1 3 * * *", "a")), {agenda: ticking})  # changed, gone before it began, and back
    assert decode_entry(written(cron, {agenda: written(app_with(), {agenda: begun})})[key]).given_us == made
    elsewhere = cron_entries(app_with(), {agenda: ticking}, lambda operator, key: False)
    assert elsewhere == cron_entries(App("gone", []), {agenda: ticking}, lambda operator, key: True)
    assert elsewhere == {agenda: {key: None}}


def test_what_a_version_finds_and_leaves() -> None:
    agenda = agenda_of("report")
    before = written(app_with(("0 3 * * *", "a"), ("0 4 * * *", "b"), ("0 5 * * *", "c")))
    ticking = {key: data for key, data in before.items() if data is not None}
    other = {("a", "@name"): b"left alone", ("a", "00000"): b"left alone"}
    changes = written(app_with(("0 3 * * *", "a"), ("9 9 * * *", "b")), {agenda: {**ticking, **other}})
    assert {key: data is None for key, data in changes.items()} == {("b", "*job"): False, ("c", "*job"): True}
    assert written(app_with(), {agenda: ticking}) == dict.fromkeys(ticking)
    assert cron_entries(App("gone", []), {agenda: ticking}, lambda operator, key: True) == {
        agenda: dict.fromkeys(ticking)
    }
    assert without_crons({agenda: {**ticking, **other}, "x": {}}) == {agenda: other, "x": {}}
    assert has_crons(app_with(("0 3 * * *", "a")))
    assert not has_crons(app_with())


def test_an_entry_that_lives_elsewhere_by_now_goes() -> None:
    agenda = agenda_of("report")
    app = app_with(("0 3 * * *", "a"))
    before = written(app)
    assert cron_entries(app, {agenda: before}, lambda operator, key: False) == {agenda: dict.fromkeys(before)}


def test_another_retry_leaves_the_next_tick() -> None:
    agenda = agenda_of("report")
    [(key, data)] = written(app_with(("0 3 * * *", "a"))).items()
    following = next_entry(decode_entry(data), 0, "next")
    stored = {agenda: {key: encode_entry(following)}}
    assert written(app_with(("0 3 * * *", "a")), stored) == {}
    [(_, changed)] = written(app_with(("0 3 * * *", "a"), attempts=2), stored).items()
    entry = decode_entry(changed)
    assert (entry.attempts, entry.due_us, entry.id) == (2, following.due_us, "next")


def test_entries_are_where_their_entities_live() -> None:
    app = app_with(("0 3 * * *", "a"), ("0 3 * * *", "b"))
    report = app.operators["report"]
    for slot in range(4):
        here = cron_entries(app, {}, lambda operator, key, slot=slot: operator.slot_of(key, 4) == slot)  # type: ignore[misc]
        keys = {key[0] for table in here.values() for key in table}
        assert keys == {key for key in ("a", "b") if report.slot_of(key, 4) == slot}
