"""The audit finds what is lost, doubled or done by halves, and nothing where there is nothing."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from datetime import date
from typing import Any

import msgspec
import pytest

import styx
from benchmarks.deathstar.hotel.app import app as site
from benchmarks.deathstar.hotel.audit import to_read
from benchmarks.deathstar.hotel.data import WRONG_PASSWORD, DataSet, user_name, user_password
from benchmarks.deathstar.hotel.expected import Expected
from benchmarks.deathstar.hotel.ledger import SHOWN_MAX
from benchmarks.deathstar.hotel.services.flight import Seats
from benchmarks.deathstar.hotel.services.hotel import Rooms
from benchmarks.deathstar.hotel.services.reservation import Reservation
from benchmarks.deathstar.hotel.services.user import user
from benchmarks.deathstar.hotel.settings import RESERVE, Settings
from benchmarks.deathstar.hotel.witness import VIOLATIONS_KEPT_MAX
from benchmarks.deathstar.hotel.workload import HotelSite
from benchmarks.driver.workload import Audit, Generator, Planned
from styx import App
from styx.client.embedded import EmbeddedClient
from styx.messages import Reply, ReplyError
from tests.benchmarks.deathstar.hotel import lossy

REQUESTS = 100
OPTIONS: dict[str, Any] = {
    "mix": "reserve-heavy",
    "hotels": 10,
    "hotels_per_city": 10,
    "rooms": 2,
    "flights": 6,
    "seats": 1,
    "users": 12,
    "places": 10,
    "wrong_password": 0.25,
}

Tampering = Callable[[EmbeddedClient, list[Generator], dict[str, Planned]], Awaitable[None]]


async def _nothing(client: EmbeddedClient, generators: list[Generator], made: dict[str, Planned]) -> None: ...


def audited(tamper: Tampering = _nothing, app: App = site, witnessed: bool = True, **options: Any) -> Audit:
    """A run, what `tamper` does to the state or to the witness, and the audit; `made` are reservations by their ids."""

    async def run() -> Audit:
        workload = HotelSite(Settings(**OPTIONS | options))
        async with styx.embedded(app) as client:
            for loading in workload.initial():
                await client.load(loading.operator.name, loading.pairs)
            generators = [workload.generator(number, 2, seed=1) for number in range(2)]
            made: dict[str, Planned] = {}
            for generator in generators:
                for _ in range(4):
                    await send(client, generator, REQUESTS // 4, made)
            await tamper(client, generators, made)
            # As it is between two processes.
            witnesses = [msgspec.msgpack.decode(msgspec.msgpack.encode(each.witness())) for each in generators]
            return await workload.audit(client, witnesses if witnessed else [])

    return asyncio.run(run())


async def send(client: EmbeddedClient, generator: Generator, count: int, made: dict[str, Planned]) -> None:
    sent = [generator.next() for _ in range(count)]
    replies = await asyncio.gather(*(client.submit(p.operator.name, p.key, p.function, *p.arguments) for p in sent))
    for planned, reply in zip(sent, replies, strict=True):
        generator.answered(planned, reply)
        if planned.kind == RESERVE and reply.error is None:
            made[reply.result] = planned


def only(violations: list[str], *parts: str) -> bool:
    """Whether there is something wrong, and each violation has one of these parts."""
    return bool(violations) and all(any(part in text for part in parts) for text in violations)


@pytest.mark.parametrize("witnessed", [True, False])
def test_a_sound_run_passes(witnessed: bool) -> None:
    audit = audited(witnessed=witnessed)
    assert audit.violations == []
    assert "10 hotels, 90 flights of a day, 12 users" in audit.checked[0]
    assert any("reservations that replies told of" in text for text in audit.checked) is witnessed
    assert not any("without an answer" in text for text in audit.checked)


def test_a_sound_run_has_all_that_the_other_tests_are_about() -> None:
    async def look(client: EmbeddedClient, generators: list[Generator], made: dict[str, Planned]) -> None:
        for generator in generators:
            seen = generator.witness()
            assert min(len(seen[name]) for name in ("made", "no_room", "no_seat", "offered")) > 3
            assert seen["counts"]["login"] == 5

    audited(look)


@pytest.mark.parametrize(
    ("operator", "function", "parts"),
    [
        ("user", lossy.reserving(room=False), ["rooms are taken", "answered"]),
        ("user", lossy.reserving(seat=False), ["seats are taken", "answered"]),
        ("user", lossy.reserving(stored=False), ["does not stand", "is NoSuchReservation", "answered"]),
        ("user", lossy.reserving(listed=0), ["is not in the list of", "answered"]),
        ("user", lossy.reserving(listed=2), ["2 times in the list", "answered"]),
        ("hotel", lossy.take_room, ["rooms are taken of 2"]),
        ("flight", lossy.take_seat, ["seats are taken, "]),
        ("flight", lossy.overbook(), ["seats are taken of 1"]),
        ("reservation", lossy.store, ["rather than Booked"]),
        ("user", lossy.login, ["login('guessed',) of user"]),
        ("hotel", lossy.offer, ["was offered in epoch"]),
        ("hotel", lossy.no_offer(), ["and is not"]),
        ("rate", lossy.price, ["nearby(Place"]),
        ("geo", lossy.nearest, ["nearby(Place"]),
        ("recommendation", lossy.best_here, ["recommend(Place"]),
    ],
)
def test_an_app_that_does_something_else_is_found(
    operator: str, function: lossy.Function, parts: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    violations = audited(app=lossy.app_with(monkeypatch, operator, function)).violations
    for part in parts:
        assert any(part in text for text in violations), (part, violations)


def test_a_wrong_password_that_reserves_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    violations = audited(app=lossy.app_with(monkeypatch, "user", lossy.reserving())).violations
    assert any("reserve('guessed'" in text and "answered" in text for text in violations)
    assert any("which no request without an answer explains" in text for text in violations)


def test_the_same_id_for_two_reservations_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    violations = audited(app=lossy.app_with(monkeypatch, "user", lossy.reserving(told="same"))).violations
    # A wrong password is another fault.
    assert any("answered 'same'" in text and "guessed" not in text for text in violations)


def first(made: dict[str, Planned]) -> tuple[str, Planned]:
    return next(iter(made.items()))


async def change_rooms(client: EmbeddedClient, hotel: int, night: str, by: int) -> None:
    rooms = client.entity("hotel", hotel)
    day = date.fromisoformat(night)
    rooms.taken[day] = rooms.taken.get(day, 0) + by
    await client.load("hotel", [(hotel, rooms)], replace=True)


@pytest.mark.parametrize("witnessed", [True, False])
@pytest.mark.parametrize("by", [-1, 1])
def test_a_room_lost_or_not_given_back_is_found(by: int, witnessed: bool) -> None:
    async def tamper(client: EmbeddedClient, generators: list[Generator], made: dict[str, Planned]) -> None:
        _, planned = first(made)
        await change_rooms(client, planned.arguments[1], planned.arguments[2], by)

    assert only(audited(tamper, witnessed=witnessed).violations, "rooms are taken", "and is not")


@pytest.mark.parametrize("witnessed", [True, False])
@pytest.mark.parametrize("by", [-1, 1])
def test_a_seat_lost_or_not_given_back_is_found(by: int, witnessed: bool) -> None:
    async def tamper(client: EmbeddedClient, generators: list[Generator], made: dict[str, Planned]) -> None:
        _, planned = first(made)
        key = (planned.arguments[4], planned.arguments[2])
        await client.load("flight", [(key, Seats(1, client.entity("flight", key).taken + by))], replace=True)

    assert only(audited(tamper, witnessed=witnessed).violations, "seats are taken", "and is not")


def test_a_room_taken_in_a_hotel_of_which_nobody_asked_is_found_by_the_sample() -> None:
    async def tamper(client: EmbeddedClient, generators: list[Generator], made: dict[str, Planned]) -> None:
        await change_rooms(client, 299, "2015-04-10", 1)

    few: dict[str, Any] = {"hotels": 300, "mix": "search"}
    assert only(audited(tamper, audit_sample=300, **few).violations, "hotel 299, 2015-04-10: 1 rooms are taken, 0")
    assert audited(tamper, audit_sample=0, **few).violations == []


def test_other_numbers_of_rooms_and_seats_are_found() -> None:
    async def tamper(client: EmbeddedClient, generators: list[Generator], made: dict[str, Planned]) -> None:
        rooms = client.entity("hotel", 5)
        await client.load("hotel", [(5, Rooms(3, rooms.taken))], replace=True)
        seats = client.entity("flight", (2, "2015-04-10"))
        await client.load("flight", [((2, "2015-04-10"), Seats(1_000, seats.taken))], replace=True)

    assert audited(tamper).violations == [
        "hotel 5 has 3 rooms rather than 2",
        "flight (2, '2015-04-10') has 1000 seats rather than 1",
    ]


def test_a_reservation_in_somebody_elses_list_is_found() -> None:
    async def tamper(client: EmbeddedClient, generators: list[Generator], made: dict[str, Planned]) -> None:
        name, planned = first(made)
        other = next(user_name(number) for number in range(12) if user_name(number) != planned.key)
        state = client.entity("user", other)
        state.reservations.append(name)
        await client.load("user", [(other, state)], replace=True)

    for witnessed in (True, False):
        assert only(audited(tamper, witnessed=witnessed).violations, "in the list", "reserved")


def test_a_list_in_another_order_is_found() -> None:
    async def tamper(client: EmbeddedClient, generators: list[Generator], made: dict[str, Planned]) -> None:
        for number in range(12):
            state = client.entity("user", user_name(number))
            state.reservations.reverse()
            await client.load("user", [(user_name(number), state)], replace=True)

    assert only(audited(tamper).violations, "behind the later one", "more of this kind")


def test_a_reservation_that_changed_is_found() -> None:
    async def tamper(client: EmbeddedClient, generators: list[Generator], made: dict[str, Planned]) -> None:
        name, planned = first(made)
        _, hotel, in_date, out_date, flight = planned.arguments
        changed = Reservation(planned.key, hotel, date.fromisoformat(in_date), date.fromisoformat(out_date), flight + 1)
        await client.load("reservation", [(name, changed)], replace=True)

    assert only(audited(tamper).violations, "rather than Booked")
    assert only(audited(tamper, witnessed=False).violations, "seats are taken")


def test_entities_that_are_gone_are_found() -> None:
    async def tamper(client: EmbeddedClient, generators: list[Generator], made: dict[str, Planned]) -> None:
        for generator in generators:
            generator.unknown(planned("user that never was", 77, 11))

    violations = audited(tamper).violations
    assert violations == [
        "hotel 77: NoSuchHotel: there is no hotel 77",
        "flight (11, '2015-04-09'): NoSuchFlight: there is no flight 11 on 2015-04-09",
    ]


def planned(name: str, hotel: int, flight: int, password: str = "right") -> Planned:
    return Planned(RESERVE, user, name, "reserve", (password, hotel, "2015-04-09", "2015-04-10", flight))


def test_a_reservation_that_nobody_was_told_of_is_found_and_one_without_an_answer_is_allowed_for() -> None:
    def tamper(sent: int, unknown: int, password: str = "right") -> Tampering:
        async def tampering(client: EmbeddedClient, generators: list[Generator], made: dict[str, Planned]) -> None:
            request = planned(user_name(3), 4, 5)
            for _ in range(sent):
                await client.call("user", request.key, "reserve", user_password(3), *request.arguments[1:])
            for _ in range(unknown):
                generators[1].unknown(planned(user_name(3), 4, 5, password))

        return tampering

    plenty: dict[str, Any] = {"rooms": 300, "seats": 300}
    for sent, unknown in ((0, 1), (1, 1), (1, 2), (2, 3)):
        audit = audited(tamper(sent, unknown), **plenty)
        assert audit.violations == []
        assert any(f"{unknown} reservations without an answer" in text for text in audit.checked)
    for sent, unknown in ((1, 0), (2, 1)):
        violations = audited(tamper(sent, unknown), **plenty).violations
        assert len(violations) == 1
        assert "which no request without an answer explains" in violations[0]
    # With a wrong password it cannot have happened, answer or not.
    assert len(audited(tamper(1, 1, WRONG_PASSWORD), **plenty).violations) == 1


def test_half_of_a_reservation_without_an_answer_is_found() -> None:
    async def tamper(client: EmbeddedClient, generators: list[Generator], made: dict[str, Planned]) -> None:
        generators[0].unknown(planned(user_name(3), 4, 5))
        await client.call("hotel", 4, "take_room", "2015-04-09", "2015-04-10")

    assert only(audited(tamper, rooms=300, seats=300).violations, "rooms are taken")


def test_a_reservation_that_the_witness_made_up_is_found() -> None:
    async def tamper(client: EmbeddedClient, generators: list[Generator], made: dict[str, Planned]) -> None:
        generators[0].answered(planned(user_name(3), 4, 5), Reply("made up", None, 1, 0, 1, "r"))

    violations = audited(tamper, rooms=300, seats=300).violations
    assert len(violations) == 4
    assert only(violations, "is NoSuchReservation", "is not in the list", "rooms are taken", "seats are taken")


def test_two_clients_with_the_same_reservation_are_found() -> None:
    async def tamper(client: EmbeddedClient, generators: list[Generator], made: dict[str, Planned]) -> None:
        name, request = first(made)
        for generator in generators:
            generator.answered(request, Reply(name, None, 1, 0, 1, "r"))

    violations = audited(tamper).violations
    assert any("two clients were told of the reservation" in text for text in violations)


@pytest.mark.parametrize("kind", ["NoRoom", "NoSeat"])
def test_what_was_said_to_be_full_and_is_not_is_found(kind: str) -> None:
    async def tamper(client: EmbeddedClient, generators: list[Generator], made: dict[str, Planned]) -> None:
        refused = Reply(None, ReplyError(kind, "", "aborted"), 1, 10**6, 0, "r")
        generators[0].answered(planned(user_name(3), 4, 5), refused)

    assert only(audited(tamper, rooms=300, seats=300).violations, "was said to be full")


@pytest.mark.parametrize(
    ("request_", "aborted_by"),
    [
        (planned(user_name(3), 4, 5), "WrongPassword"),
        (planned(user_name(3), 4, 5), "NoSuchHotel"),
        (planned(user_name(3), 4, 5, WRONG_PASSWORD), "NoRoom"),
        (Planned("login", user, user_name(3), "login", (WRONG_PASSWORD,)), "WrongPassword"),
    ],
)
def test_an_abort_for_another_reason_is_found(request_: Planned, aborted_by: str) -> None:
    async def tamper(client: EmbeddedClient, generators: list[Generator], made: dict[str, Planned]) -> None:
        for _ in range(VIOLATIONS_KEPT_MAX + 3):
            generators[0].answered(request_, Reply(None, ReplyError(aborted_by, "", "aborted"), 1, 0, 0, "r"))

    violations = audited(tamper).violations
    assert only(violations, f"was aborted by {aborted_by}", "more")
    assert len(violations) == SHOWN_MAX + 1


def test_of_each_stay_the_first_epoch_without_a_room_and_the_last_one_with_a_room_are_kept() -> None:
    workload = HotelSite(Settings(**OPTIONS | {"mix": "search"}))
    generator = workload.generator(0, 1, seed=1)
    request = generator.next()
    for epoch in (5, 7, 3):
        generator.answered(request, Reply([], None, 1, epoch, 1, "r"))
    place, in_date, out_date = request.arguments
    offers = Expected(DataSet(Settings(**OPTIONS))).offers(place, in_date, out_date)
    for epoch in (12, 14, 11):
        generator.answered(request, Reply(offers, None, 1, epoch, 1, "r"))
    seen = generator.witness()
    stays = [[offer["hotel"], in_date, out_date] for offer in offers]
    assert len(stays) == 5
    assert seen["violations"] == []
    assert [[*stay] for stay, _ in seen["no_room"]] == [[*stay] for stay, _ in seen["offered"]] == stays
    assert {epoch for _, epoch in seen["no_room"]} == {3}
    assert {epoch for _, epoch in seen["offered"]} == {14}


def test_an_answer_of_any_other_kind_is_not_noted() -> None:
    async def tamper(client: EmbeddedClient, generators: list[Generator], made: dict[str, Planned]) -> None:
        rejected = Reply(None, ReplyError("RequestRejected", "", "overloaded"), 0, 0, 0, "r")
        generators[0].answered(planned(user_name(3), 4, 5), rejected)
        for _ in range(50):
            request = generators[0].next()
            if request.kind != RESERVE:
                generators[0].unknown(request)

    assert audited(tamper).violations == []


def test_the_audit_reads_what_was_touched_and_a_sample() -> None:
    assert to_read(range(10), {3, 4}, 100) == list(range(10))
    assert to_read(range(10), {3, 4}, 0) == [3, 4]
    assert len(to_read(range(1_000), {3, 4}, 10)) == 12
