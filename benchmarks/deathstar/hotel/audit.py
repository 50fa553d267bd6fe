"""The audit of a run: it reads reservations, rooms and seats by ordinary requests, and compares them with the ledger.

It reads the hotels, flights and users named by any request to reserve, all of their reservations, and a sample of the
others, which must be unchanged. Without a witness it reads all of them.

Requests cannot find a reservation that is in no list and in no reply. So the audit would not see a reservation that an
aborted transaction left stored without any other effect.
"""

from __future__ import annotations

import random
from collections.abc import Sequence, Set
from typing import Any, Final

from benchmarks.deathstar.hotel.data import arrival_days, user_name
from benchmarks.deathstar.hotel.ledger import Found, Ledger
from benchmarks.deathstar.hotel.services import flight as flights
from benchmarks.deathstar.hotel.services import hotel as hotels
from benchmarks.deathstar.hotel.services import reservation as made
from benchmarks.deathstar.hotel.services import user as users
from benchmarks.deathstar.hotel.services.flight import flight
from benchmarks.deathstar.hotel.services.hotel import hotel
from benchmarks.deathstar.hotel.services.reservation import reservation
from benchmarks.deathstar.hotel.services.user import user
from benchmarks.deathstar.hotel.settings import LOGIN, RECOMMEND, RESERVE, SEARCH, Settings
from benchmarks.driver.reading import read_each
from benchmarks.driver.workload import Audit
from styx.client.base import Client

SAMPLE_SEED: Final = 20150409


async def audit(client: Client, settings: Settings, witnesses: Sequence[Any]) -> Audit:
    """Reads and compares. The clients must have ended: what they still send is in no witness."""
    ledger = Ledger(settings, witnesses)
    # A slot runs requests in their order. After these reads, all earlier requests in the log have been run.
    await read_each(client, user, sorted({booked.user for booked in ledger.seen.unanswered}), users.reservations)
    found = await _read(client, settings, ledger)
    return Audit(_checked(ledger, found), ledger.violations(found))


async def _read(client: Client, settings: Settings, ledger: Ledger) -> Found:
    seen, witnessed, sample = ledger.seen, ledger.witnessed, settings.audit_sample
    days = [day.isoformat() for day in arrival_days()]
    all_users = [user_name(number) for number in range(settings.users)]
    all_flights = [(number, day) for number in range(1, settings.flights + 1) for day in days]
    all_hotels = range(settings.hotels)
    lists = await read_each(
        client, user, to_read(all_users, seen.users, sample) if witnessed else all_users, users.reservations
    )
    named = {name for names in lists.values() if isinstance(names, list) for name in names}
    return Found(
        lists,
        await read_each(client, reservation, sorted(named | seen.made.keys()), made.read),
        await read_each(
            client, hotel, to_read(all_hotels, seen.hotels, sample) if witnessed else all_hotels, hotels.occupancy
        ),
        await read_each(
            client, flight, to_read(all_flights, seen.flights, sample) if witnessed else all_flights, flights.occupancy
        ),
    )


def to_read(every: Sequence[Any], touched: Set[Any], sample: int) -> list[Any]:
    """The touched ones, and as many others as the sample has room for, drawn at random."""
    others = [key for key in every if key not in touched]
    return sorted({*touched, *random.Random(SAMPLE_SEED).sample(others, min(sample, len(others)))})


def _checked(ledger: Ledger, found: Found) -> list[str]:
    counts, seen = ledger.counts, ledger.seen
    full = {stay for stay, _ in seen.no_room}
    state = (
        f"{len(found.rooms)} hotels, {len(found.seats)} flights of a day, {len(found.lists)} users: none has more "
        f"taken than there is, and taken is what the {len(found.reservations)} reservations say"
    )
    if not ledger.witnessed:
        return [state]
    checked = [
        state,
        f"{counts[RESERVE]} reservations that replies told of: each is as it was asked for, and once in its user's "
        f"list, in the order of making ({counts['not committed']} requests did not commit, and left nothing)",
        f"{counts[SEARCH]} searches and {counts[RECOMMEND]} recommendations: the right hotels, distances and prices",
        f"{counts[LOGIN]} logins: right passwords only; no request was aborted for a reason that it had not",
        f"{len(full)} stays and {len(seen.no_seat)} flights that replies said to be full: they are, "
        "and no search found one of these stays afterwards",
    ]
    if seen.unanswered:
        checked.append(
            f"{len(seen.unanswered)} reservations without an answer: each stands as a whole, or nothing of it does"
        )
    return checked
